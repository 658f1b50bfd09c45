#!/bin/sh
# The layer check finds what it is for: in a small tree that it accepts, each planted include must be refused, by file
# and header.
#
#   test-layers.sh CHECK_LAYERS
set -eu
check=$1
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT

# write FILE LINE..: a file of the tree.
write() {
    file=$tree/$1
    shift
    mkdir -p "$(dirname "$file")"
    printf '%s\n' "$@" >"$file"
}

# A tree with every include that is allowed.
plain_tree() {
    rm -rf "$tree/src" "$tree/include"
    write include/nib/status.h '#include <stddef.h>'
    write include/nib/model.h '#include "status.h"'
    write src/options.def 'ROW(a)'
    write src/base/error.c '#include "base/error.h"' '#include <nib/status.h>' '#include <stdio.h>'
    write src/kernel/dense.c '#include "kernel/kernel.h"' '#include "base/maths.h"' '#include <string.h>'
    write src/format/gguf.c '#include "format/gguf.h"' '#include "kernel/dtype.h"' '#include "base/file.h"' '#include <nib/file.h>'
    write src/text/bpe.c '#include "text/vocab.h"' '#include "base/utf8.h"' '#include <pcre2.h>'
    write src/model/open.c '#include "text/vocab.h"' '#include "format/gguf.h"' '#include "kernel/kernel.h"' '#include <nib/model.h>'
    write src/decode/generate.c '#include "model/model.h"' '#include "options.def"'
    write src/lib/version.c '#include <nib/status.h>'
    write src/cli/main.c '#include <nib/nib.h>' '#include "cli/cli.h"'
}

failed=0
planted=0

# plant FILE LINE: adds the line to a file of the plain tree; the check must fail and name the file.
plant() {
    plain_tree
    planted=$((planted + 1))
    printf '%s\n' "$2" >>"$tree/$1"
    if said=$("$check" "$tree" 2>&1); then
        echo "not found: $1 with $2"
        failed=1
    elif ! printf '%s\n' "$said" | grep -q "^$1:[0-9]*: "; then
        echo "not named: $1 with $2, the check said: $said"
        failed=1
    fi
}

plain_tree
"$check" "$tree" || {
    echo "the plain tree is refused"
    exit 1
}
plant src/base/error.c '#include "kernel/dtype.h"'
plant src/base/error.c '#include <nib/model.h>'
plant src/kernel/dense.c '#include "format/gguf.h"'
plant src/kernel/dense.c '#include "base/error.h"'
plant src/kernel/dense.c '#include <stdlib.h>'
plant src/kernel/dense.c '  #  include <pthread.h>'
plant src/format/gguf.c '#include "kernel/kernel.h"'
plant src/format/gguf.c '#include "text/vocab.h"'
plant src/text/bpe.c '#include "format/gguf.h"'
plant src/text/bpe.c '#include "kernel/dtype.h"'
plant src/text/bpe.c '#include <model/model.h>'
plant src/model/open.c '#include "decode/session.h"'
plant src/decode/generate.c '#include "cli/cli.h"'
plant src/lib/version.c '#include "base/error.h"'
plant src/cli/main.c '#include "base/memory.h"'
plant src/cli/main.c '#include "decode/session.h"'
plant src/cli/main.c '#include "../base/memory.h"'
plant src/options.def '#include <nib/nib.h>'
plant include/nib/model.h '#include "base/error.h"'
plant include/nib/model.h '#include "../../src/base/error.h"'
plant include/nib/model.h '#include <nib/status.h>'
[ "$failed" = 0 ] && echo "$planted planted includes found"
exit "$failed"
