#!/bin/sh
# What the programs of bench/ make of known figures; nothing is timed.
#
#   bench/check.sh PERPLEXITY TINY_MODEL     the program; a tiny model with a tokenizer
set -eu
perplexity=$1
model=$2
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

die() {
    echo "check.sh: $*" >&2
    exit 1
}

# has FILE TEXT
has() {
    grep -qF -e "$2" "$1" || {
        cat "$1" >&2
        die "$1 lacks: $2"
    }
}

printf 'The river stood at 212 cm and rose by 3 cm an hour. It will reach the bridge at noon.\n' >text

# The same mode twice differs by nothing; without a start token the first token of each window is not scored.
"$perplexity" -m "$model" --tokens 30 --window 8 --mode exact:f32 --mode exact:f32 --json -t 2 text >same
has same '"relative":0,"relative_error":0}]}'
# One piece or several, one thread or two: the same figure.
"$perplexity" -m "$model" --tokens 30 --window 8 --mode exact:f32 --mode exact:f32 --json -t 1 text | cmp - same
"$perplexity" -m "$model" --tokens 30 --window 8 --mode exact:f32 --mode exact:f16 --json text >other
! grep -qF '"relative":0,"relative_error":0}]}' other || die "another cache type gives the same figure"
! "$perplexity" -m "$model" --tokens 3000 text 2>few || die "a text too short is taken"
has few 'expected at least 3000'
! "$perplexity" -m "$model" --mode fats text 2>wrong || die "a mode that is none is taken"
has wrong 'fats'

command -v python3 >/dev/null 2>&1 || {
    echo "check.sh: skipped, python3 is not here"
    exit 77
}

# round SIDE ROUND TOK_S CPU
round() {
    echo "{\"side\":\"$1\",\"name\":\"q4_1\",\"round\":$2,\"asked_cpu\":\"$4\",\"measured\":{\"version\":\"1\",\"contract\":1,\"cpu\":\"x\",\"compute\":\"fast\",\"cache_type\":\"f16\",\"threads\":2,\"limits\":{\"read_gb_s\":10,\"f32_gflop_s\":20,\"int8_gop_s\":30},\"runs\":[{\"what\":\"decode\",\"batch\":1,\"depth\":0,\"tokens\":4,\"tok_s\":$3,\"gb_s\":5,\"gflop_s\":6,\"part_of_limit\":0.5,\"bound\":\"reading\"}]}}"
}

for cpu in auto avx2; do
    {
        echo '{"side":"info","peer":{"version":"9","system":"S"},"machine":{"processor":"P","processors":2,"l3":"L","memory_bytes":1073741824,"kernel":"K","compiler":"C"},"commit":"c"}'
        round nib 1 30 "$cpu"
        round peer 1 10 "$cpu"
        round nib 2 40 "$cpu"
        round peer 2 20 "$cpu"
        round nib 3 10 "$cpu"
        round peer 3 40 "$cpu"
    } >"$cpu.jsonl"
done
# Medians 30 and 20; single rounds 3, 2 and 0.25.
"$here/peers" --from avx2.jsonl --write page.md >table
has table '| SmolLM2 135M Q4_1 | decode, batch 1 | 30.0 | 20.0 | **1.50** (0.25 to 3.00) | 5.0 | 6.0 | 50 % of reading |'
has table 'Least ratio: 1.50'
"$here/peers" --from auto.jsonl --write page.md >table
echo "0  text" >hashes
echo "{\"model\":\"m\",\"measured\":$(cat same)}" >results
python3 "$here/table.py" --perplexity results --hashes hashes --write page.md >table
has table '+0.00 ± 0.00 %'
# Each section once, in this order, however often and in which order they come.
cp page.md before.md
"$here/peers" --from avx2.jsonl --write page.md >table
cmp page.md before.md
[ "$(grep '^<!-- begin' page.md | tr -d '\n')" = '<!-- begin auto --><!-- begin avx2 --><!-- begin exact -->' ] ||
    die "the sections of the page are $(grep '^<!--' page.md)"
