# Temperature 0 is greedy; so is --greedy whatever the temperature; the seed changes nothing then.
. "$CLI_LIB"
set -- generate -m random:llama-tiny --prompt-ids 4,5 -n 12
quiet "$@" --greedy
quiet "$@" --temperature 0
quiet "$@" --greedy --temperature 30 --seed 9 --top-k 3
quiet "$@" --temperature 0 --sampler cdf
quiet "$@" --top-k 1
quiet "$@" --top-p 0
# Drawn, for comparison; the two samplers draw by different rules.
quiet "$@" --seed 1 --do-sample
quiet "$@" --seed 1
quiet "$@" --seed 1 --sampler cdf
quiet "$@" --seed 1 --top-k 256
quiet "$@" --seed 1 --top-k 5 --top-p 0.9 --min-p 0.1 --repetition-penalty 1.3
