#!/bin/sh
# Runs cases of the command: CASE.sh with its standard output, standard error and exit code beside it in CASE.out,
# CASE.err and CASE.exit.
#
#   tests/cli/run-case.sh NIB [CASE.sh ..]             compares; all cases when none is named
#   tests/cli/run-case.sh --rewrite NIB [CASE.sh ..]   writes down what happens now; read the difference before you commit
#
# A case runs by sh -e in an empty directory. It finds NIB (the command), TINY (the tiny models of tests/golden) and
# MODELS (fetched models), and reads CLI_LIB for the functions of lib.sh. It ends with 77, and a reason on standard
# error, when it cannot run here. What differs from run to run is replaced before comparing: seconds, speeds and the
# seed of the line of timings, and the directories.
set -u

here=$(cd "$(dirname "$0")" && pwd)
TINY=$(cd "$here/../golden/tiny" && pwd)
MODELS=${NIB_CACHE:-${XDG_CACHE_HOME:-${HOME:-}/.cache}/nib}
CLI_LIB=$here/lib.sh
export TINY MODELS CLI_LIB

rewrite=no
if [ "${1:-}" = --rewrite ]; then
    rewrite=yes
    shift
fi
if [ $# -lt 1 ] || [ ! -x "$1" ]; then
    echo "run-case.sh: ${1:-no command}: expected the nib to run" >&2
    exit 2
fi
NIB=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
export NIB
shift
unset NIB_CPU
[ $# -gt 0 ] || set -- "$here"/cases/*.sh

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM

# What varies. Directories come first, the longest before those that hold it.
steady() {
    sed -e "s|$work/run|DIR|g" -e "s|$work|DIR|g" -e "s|$TINY|TINY|g" -e "s|$MODELS|MODELS|g" \
        -e '/^nib: .*first token after/{' \
        -e 's/after [0-9.]* s/after N s/;s/[0-9.]* tokens\/s/N tokens\/s/;s/seed [0-9]*$/seed N/' -e '}'
}

# run_case CASE.sh: 0 as expected (or rewritten), 1 not, 77 could not run.
run_case() {
    base=${1%.sh}
    case $base in
    /*) ;;
    *) base=$PWD/$base ;;
    esac
    rm -rf "$work/run"
    mkdir "$work/run"
    (cd "$work/run" && sh -e "$base.sh" >../raw.out 2>../raw.err </dev/null)
    code=$?
    steady <"$work/raw.out" >"$work/out"
    steady <"$work/raw.err" >"$work/err"
    echo "$code" >"$work/exit"
    if [ "$code" -eq 77 ]; then
        echo "$(basename "$base"): skipped: $(cat "$work/err")"
        return 77
    fi
    result=0
    for kind in out err exit; do
        if [ "$rewrite" = yes ]; then
            cp "$work/$kind" "$base.$kind"
        elif ! diff -u "$base.$kind" "$work/$kind"; then
            result=1
        fi
    done
    [ "$result" -eq 0 ] || echo "$(basename "$base"): not as written down"
    return "$result"
}

worst=0
for one; do
    status=0
    run_case "$one" || status=$?
    # A failure outweighs what could not run.
    [ "$status" -eq 0 ] || [ "$worst" -eq 1 ] || worst=$status
done
exit "$worst"
