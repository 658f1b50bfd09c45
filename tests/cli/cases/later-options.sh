# What a later version brings is refused by name.
. "$CLI_LIB"
for option in "--compute fast" "--cache static" "--cache none" "--cache-type f16" "--cache-type q8_0" "--cpu avx512" \
    "--cpu avx512vnni" "--cpu neon" "--cpu neondot" "--threads 2" "--cache static --max-cache-len 64"; do
    # shellcheck disable=SC2086 # words
    try generate -m none.gguf --prompt-ids 1 $option
done
# What is there already.
quiet generate -m random:llama-tiny --prompt-ids 1 -n 3 --seed 1 --compute exact --cache dynamic --cache-type f32 -t 1 \
    --cpu auto --prefill-chunk 1
