# An input without end is refused at 1 GiB, before it fills the memory.
. "$CLI_LIB"
[ -c /dev/zero ] || skip "/dev/zero is not there"
awk '/^MemAvailable:/ { enough = $2 > 3000000 } END { exit !enough }' /proc/meminfo ||
    skip "less than 3 GB of memory are free"
try tokenize -m "$TINY/llama-text.gguf" </dev/zero
