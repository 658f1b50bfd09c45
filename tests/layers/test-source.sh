#!/bin/sh
# The check of the sources finds what it is for: each planted line must be refused under its heading.
#
#   test-source.sh CHECK_SOURCE
set -eu
check=$1
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
failed=0
planted=0

plain_tree() {
    rm -rf "${tree:?}"/*
    mkdir -p "$tree/src/base" "$tree/docs" "$tree/script"
    printf '/* A head. */\nint f(void)\n{\n    return 0;\n}\n' >"$tree/src/base/one.c"
    printf '# Words\n' >"$tree/docs/words.md"
    printf '#!/bin/sh\n' >"$tree/script/run"
}

# plant HEADING FILE TEXT: appends to the file; the check must fail under the heading.
plant() {
    plain_tree
    planted=$((planted + 1))
    printf '%b\n' "$3" >>"$tree/$2"
    if said=$("$check" "$tree" 2>&1); then
        echo "not found: $3"
        failed=1
    elif ! printf '%s\n' "$said" | grep -q "^$1"; then
        echo "not under \"$1\": $3, the check said: $said"
        failed=1
    fi
}

plain_tree
"$check" "$tree" || {
    echo "the plain tree is refused"
    exit 1
}
# The planted words are put together here so that the check does not find them in this file.
plant "open ends" src/base/one.c "/* TO""DO */"
plant "open ends" script/run "# FIX""ME later"
plant "forbidden flags" script/run "cc -march""=native x.c"
plant "forbidden flags" src/base/one.c "/* -ffast""-math */"
plant "addresses in what runs" script/run "fetch https"":""//example.org/file"
plant "package registries" docs/words.md "from py""pi.org"
plant "paths of one machine" docs/words.md "see /ho""me/me/file"
plant "advertising" docs/words.md "a bla""zing tool"
plant "allocation beside" src/base/one.c "void *p = mal""loc(3);"
plant "allocation beside" src/base/one.c "    fr""ee(p);"
plant "too long" src/base/one.c "int g(void)\n{$(seq -s '\n' 1 110)\n}"
plant "too long" src/base/one.c "$(seq -s '\n' 1 900)"
plant "no head" src/base/two.c "int x;"
plant "file names used twice" src/one.c "/* A head. */"
[ "$failed" = 0 ] && echo "$planted planted lines found"
exit "$failed"
