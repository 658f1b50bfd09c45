#!/bin/sh
# Every public header compiles by itself, as C99 and as C++17, without a warning, with each compiler that is here.
#
#   check-headers.sh INCLUDE_NIB
set -eu
headers=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0
compiled=0

# compile COMPILER STANDARD LANGUAGE FILE
compile() {
    command -v "$1" >/dev/null 2>&1 || return 0
    compiled=$((compiled + 1))
    "$1" -x "$3" -std="$2" -Wall -Wextra -pedantic -Werror -fsyntax-only -I "$headers/.." "$4" || {
        echo "$header does not compile as $2 with $1"
        failed=1
    }
}

for header in "$headers"/*.h; do
    name=nib/$(basename "$header")
    # Twice: the guard holds. The macros expand to something that compiles.
    printf '#include <%s>\n#include <%s>\n' "$name" "$name" >"$work/alone.c"
    [ "$name" != nib/nib.h ] || cat >>"$work/alone.c" <<'END'
extern nib_model_options model_options;
extern nib_session_options session_options;
extern nib_generate_options generate_options;
extern nib_custom_model custom_model;
nib_model_options model_options = NIB_MODEL_OPTIONS_INIT;
nib_session_options session_options = NIB_SESSION_OPTIONS_INIT;
nib_generate_options generate_options = NIB_GENERATE_OPTIONS_INIT;
nib_custom_model custom_model = NIB_CUSTOM_MODEL_INIT;
END
    for compiler in gcc clang; do
        compile "$compiler" c99 c "$work/alone.c"
    done
    for compiler in g++ clang++; do
        compile "$compiler" c++17 c++ "$work/alone.c"
    done
done
[ "$compiled" -gt 0 ] || {
    echo "no compiler found"
    exit 77
}
echo "$compiled compilations"
exit "$failed"
