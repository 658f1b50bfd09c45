# The same bytes with avx2 as with base.
. "$CLI_LIB"
grep -q -w avx2 /proc/cpuinfo || skip "this machine has no AVX2"
for model in llama-text llama-k-quants gemma3-window64-q8_0; do
    set -- generate -m "$TINY/$model.gguf" --prompt-ids 1,2,3,4,5,6,7,8,9,10,11,12 -n 20 --seed 2 --json --ignore-eos
    quiet "$@" --cpu base >base
    quiet "$@" --cpu avx2 | cmp - base
    NIB_CPU=avx2 quiet "$@" | cmp - base
done
