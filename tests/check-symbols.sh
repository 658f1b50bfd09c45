#!/bin/sh
# The library computes without libm and exports only nib_ names: reads the symbols of the static library given.
# docs/numerics.md, rule 0. usage: check-symbols.sh LIBRARY [NM]
set -eu
library=$1
nm=${2:-nm}
# Every elementary function of libm in double, float and long double; sqrt too, since it must be the instruction.
names='a?cosh?|a?sinh?|a?tanh?|atan2|exp|exp2|exp10|expm1|log|log2|log10|log1p|logb|pow|powi|sqrt|cbrt|hypot|erfc?|[lt]gamma|fma'
names="$names|fmod|remainder|remquo|ldexp|scalbl?n|frexp|modf|nearbyint|l?l?rint|l?l?round|trunc|floor|ceil|fdim|fmax|fmin|sincos"
undefined=$("$nm" -u "$library" | awk '$1 == "U" { sub(/@.*/, "", $2); print $2 }' | sort -u)
found=$(printf '%s\n' "$undefined" | grep -Ex "($names)[fl]?" || true)
if [ -n "$found" ]; then
    echo "$library calls libm:" $found
    exit 1
fi
foreign=$("$nm" -g --defined-only "$library" | awk 'NF == 3 { print $3 }' | grep -Ev '^(nib_|__)' || true)
if [ -n "$foreign" ]; then
    echo "$library defines names that do not begin with nib_:" $foreign
    exit 1
fi
# A check of nothing finds nothing.
"$nm" -g --defined-only "$library" | grep -q ' nib_kernels_find$' || { echo "$library has no nib_kernels_find"; exit 1; }
echo "$library: $(printf '%s\n' "$undefined" | wc -l) undefined names, none of libm; all defined ones begin with nib_"
