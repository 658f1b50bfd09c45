#!/bin/sh
# What the libraries give the linker: every name begins with nib_, the shared one gives exactly the functions that the
# public headers declare, and it does without the mathematics library, whose results differ between machines.
#
#   check-exports.sh LIBNIB_SO LIBNIB_A INCLUDE_NIB
set -eu
shared=$1
static=$2
headers=$3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
bad=0

# NAME TYPE of what a library defines for others.
nm -D --defined-only "$shared" | awk '{ print $NF }' | sort -u >"$work/shared"
nm -g --defined-only "$static" 2>/dev/null | awk 'NF == 3 { print $NF }' | sort -u >"$work/static"
if [ ! -s "$work/shared" ] || [ ! -s "$work/static" ]; then
    echo "no symbols found: is nm reading $shared and $static?"
    exit 1
fi
for library in shared static; do
    if grep -v '^nib_' "$work/$library"; then
        echo "these names of the $library library do not begin with nib_"
        bad=1
    fi
done

# A declaration: NIB_API, then a type, then name( .
cat "$headers"/*.h | tr '\n' ' ' | grep -oE 'NIB_API [^;(]*\(' | grep -oE 'nib_[a-z0-9_]+\($' | tr -d '(' | sort -u \
    >"$work/declared"
if comm -23 "$work/declared" "$work/shared" | grep .; then
    echo "these functions are declared in the public headers and missing in the shared library"
    bad=1
fi
if comm -13 "$work/declared" "$work/shared" | grep .; then
    echo "these functions are in the shared library and no public header declares them"
    bad=1
fi
if readelf -d "$shared" | grep 'NEEDED.*libm\.so'; then
    echo "the shared library needs libm"
    bad=1
fi
exit "$bad"
