# Forms of --prompt-ids: a comma or white space between two ids.
. "$CLI_LIB"
for ids in 5,17,33 '5, 17, 33' '5 17 33' ' 5	17
33 ' 0005,17,033; do
    quiet generate -m random:llama-tiny --prompt-ids "$ids" -n 3 --seed 1 --json
done
# The longest prompt that has room for a token, and the room there is: one token.
quiet generate -m random:llama-tiny --prompt-ids "$(seq -s , 1 127)" -n 9 --seed 1
