# The same bytes on every instruction set, by flag and by NIB_CPU.
. "$CLI_LIB"
for model in llama-text llama-quants gemma3-window8-f16; do
    set -- generate -m "$TINY/$model.gguf" --prompt-ids 1,2,3,4,5,6,7,8,9,10,11,12 -n 20 --seed 2 --json --ignore-eos
    quiet "$@" --cpu base >base
    cat base
    # Those that this machine has, and numbers of threads.
    for cpu in avx2 avx512 avx512vnni neon neondot; do
        if "$NIB" "$@" --cpu $cpu >here 2>/dev/null; then
            cmp here base
        fi
    done
    for threads in 2 3 8; do
        quiet "$@" -t $threads | cmp - base
    done
    NIB_CPU=base quiet "$@" | cmp - base
    NIB_CPU=base quiet "$@" --cpu auto | cmp - base
    quiet "$@" | cmp - base
    # The flag decides.
    NIB_CPU=nonsense quiet "$@" --cpu base | cmp - base
done
NIB_CPU=nonsense try generate -m random:llama-tiny --prompt-ids 1 | sed 's/machine has: .*/machine has: ../'
