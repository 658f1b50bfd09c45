# Where a flag's value stands.
. "$CLI_LIB"
try generate -m
try generate -m random:llama-tiny --temperature
try generate -m random:llama-tiny --json=1
try generate -m random:llama-tiny --greedy=yes
try generate -m random:llama-tiny --prompt-ids 1 words
try generate -m random:llama-tiny --prompt-ids 1 -- --greedy
try tokenize -m random:llama-tiny one two
try show one two

# The same three times.
set -- generate -m random:llama-tiny --prompt-ids 1,2 --seed 3
quiet "$@" -n 5 --temperature 0.5
quiet "$@" -n5 --temperature=0.5
quiet "$@" --max-tokens=5 --temperature=5e-1
# The last one counts.
quiet "$@" -n 7 -n 5 --temperature 2 --temperature 0.5
