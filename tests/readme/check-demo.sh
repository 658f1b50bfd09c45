#!/bin/sh
# The story in README.md is what script/demo's own command writes here, word for word.
#
#   check-demo.sh SOURCE NIB
set -eu
source=$1
nib=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

model=${NIB_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/nib}/SmolLM2-135M-Instruct.Q4_1.gguf
[ -e "$model" ] || {
    echo "skipped: $model is not there (script/fetch-models)"
    exit 77
}

# Its last command, with this build's nib.
{
    printf 'model=%s\n' "'$model'"
    sed -n '/^build\/release\/nib generate/,$p' "$source/script/demo" | sed "1s|^build/release/nib|'$nib'|"
} >"$work/command"
sh "$work/command" 2>/dev/null | tr -s '[:space:]' '\n' >"$work/written"
[ "$(wc -l <"$work/written")" -ge 60 ] || {
    echo "less than 60 words:"
    cat "$work/written"
    exit 1
}

# The indented lines behind the one that announces the output.
awk '/Its standard output is:?$/ { inside = 1; next } inside && /^[^ ]/ { exit } inside' "$source/README.md" |
    tr -s '[:space:]' '\n' | sed '/^$/d' >"$work/shown"
diff "$work/shown" "$work/written"
