# Output that cannot be written is an error of ours, exit code 1; the process is not killed.
. "$CLI_LIB"
full() {
    echo "\$ nib $* >/dev/full"
    code=0
    { "$NIB" "$@" >/dev/full; } 2>&1 || code=$?
    echo "exit $code"
}
[ -c /dev/full ] || skip "/dev/full is not there"
full --help
full --version
full generate --help
full generate -m random:llama-tiny --prompt-ids 1 -n 20 --seed 1
full generate -m random:llama-tiny --prompt-ids 1 -n 20 --seed 1 --json
full tokenize -m "$TINY/llama-text.gguf" text
full detokenize -m "$TINY/llama-text.gguf" 64
full show "$TINY/llama-text.gguf"
full show --json "$TINY/llama-text.gguf"

# A reader that takes one byte and goes: the work of hours ends too.
{
    code=0
    "$NIB" generate -m random:llama-tiny,max_seq_len=1000000 --prompt-ids 1 -n 900000 --seed 1 2>err || code=$?
    echo "$code" >code
} | head -c 1
echo
sed 's/, [0-9]* tokens,/, some tokens,/' err
cat code
