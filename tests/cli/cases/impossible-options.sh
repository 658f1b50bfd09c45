# An option that cannot be is refused before the model is touched: the file named here does not exist.
. "$CLI_LIB"
refuse() {
    try generate -m none.gguf --prompt-ids 1 "$@"
}
refuse --temperature nan
refuse --temperature inf
refuse --temperature -1
refuse --temperature 1,5
refuse --temperature ''
refuse --temperature 1x
refuse --temperature 1e31
refuse --top-p 2
refuse --top-p -0.1
refuse --top-p nan
refuse --min-p 1.5
refuse --min-p -1
refuse --repetition-penalty 0
refuse --repetition-penalty nan
refuse --top-k -1
refuse --top-k 1.5
refuse -n -1
refuse --max-tokens 2147483648
refuse --max-tokens 99999999999999999999
refuse --max-length -1
refuse --num-return 0
refuse --num-return -2
refuse --num-return 65537
refuse --seed -1
refuse --seed 18446744073709551616
refuse --seed 1e3
refuse --seed ''
refuse --stop-id -1
refuse --stop-id +1
refuse --eos-id one
refuse --eos-id 2147483648
refuse --pad-id -1
refuse --stop ''
refuse --prefill-chunk -1
refuse --threads 0
refuse --threads 257
refuse --max-cache-len 0
refuse --max-cache-len 64
refuse --do-sample --temperature 0
refuse --sampler best
refuse --logprobs none
refuse --cpu sse
refuse --compute quick
refuse --cache paged
refuse --cache-type f64
try generate --prompt-ids 1
try tokenize text
try detokenize 1
try show
