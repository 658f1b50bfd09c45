# What a later version brings is refused by name.
. "$CLI_LIB"
for option in "--cache-type q8_0"; do
    # shellcheck disable=SC2086 # words
    try generate -m none.gguf --prompt-ids 1 $option
done
# An instruction set of other machines is refused when a model is opened.
case $(uname -m) in
aarch64) foreign=avx512vnni ;;
*) foreign=neondot ;;
esac
try generate -m random:llama-tiny --prompt-ids 1 --cpu $foreign | sed "s/$foreign/FOREIGN/; s/has: .*/has: ../"
# What is there already.
quiet generate -m random:llama-tiny --prompt-ids 1 -n 3 --seed 1 --compute exact --cache dynamic --cache-type f32 -t 1 \
    --cpu auto --prefill-chunk 1
for cache in "none" "static" "static --max-cache-len 64"; do
    # shellcheck disable=SC2086 # words
    quiet generate -m random:llama-tiny --prompt-ids 1 -n 3 --seed 1 --compute exact -t 2 --cache $cache --max-rows 1
done
quiet generate -m random:llama-tiny --prompt-ids 1 -n 3 --seed 1 --compute fast --cache-type f16 -t 3
