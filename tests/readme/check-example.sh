#!/bin/sh
# Takes the C program out of README.md, compiles it with every warning an error, and lets it write with the small model.
#
#   check-example.sh SOURCE BUILD
set -eu
source=$1
build=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

awk '/^```c$/ { inside = 1; next } /^```$/ { inside = 0 } inside' "$source/README.md" >"$work/example.c"
grep -q 'main' "$work/example.c" || {
    echo "README.md holds no C program"
    exit 1
}
cc -std=c99 -Wall -Wextra -pedantic -Werror -I "$source/include" -o "$work/example" "$work/example.c" -L "$build" -lnib

export LD_LIBRARY_PATH="$build"
if "$work/example" "$work/nothing.gguf" "text" >"$work/out"; then
    echo "the example says that all is well with a model that is not there"
    exit 1
fi
model=${NIB_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/nib}/SmolLM2-135M-Instruct.Q4_1.gguf
[ -e "$model" ] || {
    echo "skipped after compiling: $model is not there (script/fetch-models)"
    exit 77
}
"$work/example" "$model" "The lighthouse" >"$work/out"
[ "$(wc -w <"$work/out")" -ge 10 ] || {
    echo "the example wrote less than ten words: $(cat "$work/out")"
    exit 1
}
