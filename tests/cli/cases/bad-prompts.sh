# Prompts that cannot be: one line, exit code 4.
. "$CLI_LIB"
ids() {
    try generate -m random:llama-tiny --seed 1 -n 2 --prompt-ids "$@"
}
ids ''
ids ' '
ids 1 --prompt-ids ''
ids 256
ids 1,2,256
ids 1 --prompt-ids 2,999
ids -1
ids 1,x
ids 1.5
ids 1,,2
ids ,1
ids 1,
ids 2147483648
ids 99999999999999999999
ids +1
long=$(seq -s , 1 128)
try generate -m random:llama-tiny --prompt-ids "$long" | sed 's/1,2,.*,128/1,2,..,128/'
ids 1 --stop-id 256
ids 1 --eos-id 256
ids 1 --pad-id 256
try generate -m "$TINY/llama-text.gguf" -p ''
try generate -m "$TINY/llama-text.gguf"
try generate -m "$TINY/llama-text.gguf" -f none.txt
try generate -m "$TINY/llama-text.gguf" -f .
try detokenize -m "$TINY/llama-text.gguf" 1,400
try detokenize -m "$TINY/llama-text.gguf" 1,x
try generate -m "$TINY/llama-text.gguf" --no-bos -p ''
