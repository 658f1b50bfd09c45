# What the cases share. They read it by: . "$CLI_LIB"

# try ARGUMENTS..: runs nib, and writes the command, all that it wrote and its exit code to standard output.
try() {
    echo "\$ nib $*"
    code=0
    "$NIB" "$@" 2>&1 || code=$?
    echo "exit $code"
}

# quiet ARGUMENTS..: runs nib without its messages.
quiet() {
    "$NIB" "$@" 2>/dev/null
}

# need FILE: ends the case as one that cannot run when the file is not there.
need() {
    [ -e "$1" ] || skip "$1 is not there; script/fetch-models brings it"
}

skip() {
    echo "$*" >&2
    exit 77
}

# put FILE OFFSET BYTES: writes bytes, as printf takes them, into a file.
put() {
    # shellcheck disable=SC2059 # the bytes are a format on purpose
    printf "$3" | dd of="$1" bs=1 seek="$2" conv=notrunc 2>/dev/null
}

# offset FILE TEXT: where the text first stands in a file.
offset() {
    LC_ALL=C grep -abo -e "$2" "$1" | head -n 1 | cut -d : -f 1
}

# catches PID: waits until the process catches SIGINT, so that one sent now is not its end.
catches() {
    while kill -0 "$1" 2>/dev/null; do
        mask=$(sed -n 's/^SigCgt:.*\(..\)$/\1/p' "/proc/$1/status" 2>/dev/null) || mask=
        [ -n "$mask" ] || skip "no /proc to look into"
        # SIGINT is bit 1.
        [ $((0x$mask & 2)) -eq 0 ] || return 0
        sleep 0.02
    done
}
