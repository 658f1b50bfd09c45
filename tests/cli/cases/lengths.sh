# How many new tokens: -n counts them, --max-length the prompt too, -n decides when both are given.
. "$CLI_LIB"
count() {
    quiet generate -m random:llama-tiny --seed 1 --json --prompt-ids "$@" |
        sed 's/.*"prompt_ids":\[\([^]]*\)\],"ids":\[\([^]]*\)\].*"finish_reason":"\([a-z]*\)".*/\1 | \2 | \3/' |
        awk -F ' [|] ' '{ print split($1, a, ","), "then", split($2, b, ","), $3 }'
}
count 1,2,3
count 1,2,3 -n 0
count 1,2,3 -n 1
count 1,2,3 -n 5
count 1,2,3 --max-length 5
count 1,2,3 --max-length 3
count 1,2,3 --max-length 2
count 1,2,3 --max-length 0
count 1,2,3 -n 4 --max-length 5
count 1,2,3 -n 2 --max-length 50
count 1,2,3 -n 5000
try generate -m random:llama-tiny --prompt-ids 1,2,3 -n 0 --seed 1
