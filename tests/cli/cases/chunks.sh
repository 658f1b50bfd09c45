# The same bytes in a second run and however the prompt is cut into passes.
. "$CLI_LIB"
for model in llama-text gemma3-window8-f16; do
    set -- generate -m "$TINY/$model.gguf" --prompt-ids "$(seq -s , 1 90)" -n 10 --seed 2 --json --ignore-eos
    quiet "$@" >whole
    cat whole
    for n in 0 1 7 64 90 1000; do
        quiet "$@" --prefill-chunk "$n" | cmp - whole
    done
    quiet "$@" | cmp - whole
done
