# Seeds of the whole range; one that nobody gave is random, told, and repeats the run.
. "$CLI_LIB"
set -- generate -m random:llama-tiny --prompt-ids 1 -n 8
for seed in 0 1 9223372036854775808 18446744073709551615; do
    quiet "$@" --seed "$seed" --json
done
"$NIB" "$@" >first 2>err
seed=$(sed -n 's/.* seed \([0-9]*\)$/\1/p' err)
quiet "$@" --seed "$seed" >again
cmp first again
"$NIB" "$@" 2>&1 >other | grep -q "seed $seed\$" && echo "the same random seed twice"
quiet "$@" --seed 1 >first
quiet "$@" --seed 1 >again
cmp first again
