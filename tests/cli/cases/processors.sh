# Penalties, bans, filters and alternatives from the command line; each changes what comes, and what it must.
. "$CLI_LIB"
set -- generate -m "$TINY/llama-text.gguf" --prompt-ids 5,17,33 --seed 3 -n 6 --json
quiet "$@" --top-logprobs 2
quiet "$@" --top-logprobs 3 --logprobs processed --top-k 2
quiet "$@" >plain
for flags in "--frequency-penalty 0 --presence-penalty 0" "--no-repeat-ngram-size 0" "--dry-multiplier 0" "--typical-p 1" \
    "--epsilon-cutoff 0 --eta-cutoff 0" "--top-n-sigma 0" "--xtc-probability 0" "--dynatemp-range 0" "--order llama" \
    "--top-k-ties keep" "--min-tokens 0" "--logit-bias 5=0"; do
    # shellcheck disable=SC2086
    quiet "$@" $flags | cmp - plain
done
echo "banned, biased, allowed"
quiet "$@" --greedy >greedy
cut -d '"' -f 9 greedy
quiet "$@" --greedy --suppress-id 40 --logit-bias 7=100 | cut -d '"' -f 9
quiet "$@" --greedy --logit-bias 33,9=100 --logit-bias 9,8=100 | cut -d '"' -f 9
quiet "$@" --allowed-id 50 --allowed-id 51 | cut -d '"' -f 9
quiet "$@" --greedy --logit-bias 50=100 --no-repeat-ngram-size 2 | cut -d '"' -f 9
echo "refused"
for flags in "--logit-bias 5" "--logit-bias 5=x" "--logit-bias =1" "--logit-bias 5=nan" "--logit-bias 5=inf" \
    "--logit-bias 400=1" "--typical-p 1.5" "--min-tokens -1" "--no-repeat-ngram-size -1" "--order vllm" "--top-logprobs -1" \
    "--suppress-id -3" "--allowed-id 400" "--dry-base 0.5" "--frequency-penalty nan"; do
    # shellcheck disable=SC2086
    try "$@" $flags
done
