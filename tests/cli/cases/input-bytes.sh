# Text from standard input or a file is taken byte for byte: newlines at the end stay, NUL is a byte.
. "$CLI_LIB"
model=$TINY/llama-text.gguf
printf 'a\0b\n\n' >text
printf 'a' >one
printf 'caf\303\251 \377\376 \342\200' >bytes
ids() {
    sed 's/.*"prompt_ids":\(\[[^]]*\]\).*/\1/'
}
for file in text one bytes; do
    quiet tokenize -m "$model" --json <"$file"
    quiet generate -m "$model" -n 1 --seed 1 --json <"$file" | ids
    quiet generate -m "$model" -n 1 --seed 1 --json -f "$file" | ids
    quiet tokenize -m "$model" <"$file" | quiet detokenize -m "$model" | cmp - "$file"
done
quiet generate -m "$model" -n 1 --seed 1 --json -f text --prompt-ids 7 -p b -f one | ids
