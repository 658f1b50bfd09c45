# nib tokenize and nib detokenize, by argument and by standard input.
. "$CLI_LIB"
model=$TINY/llama-text.gguf
try tokenize -m "$model" "Hello, world"
try tokenize -m "$model" --json "Hello, world"
try tokenize -m "$model" --json ''
try tokenize -m "$model" ''
try tokenize -m "$model" -- --json
printf 'Hello, world' | try tokenize -m "$model"
try detokenize -m "$model" '64 65,66'
echo
try detokenize -m "$model" --json 64,65,66,188,10
try detokenize -m "$model" --json ''
# Ids as nib tokenize prints them come back as the text.
for text in 'Hello, world' '  two  spaces ' 'żółć 日本語 👩‍👩‍👧' 'x=1;	y'; do
    quiet tokenize -m "$model" "$text" | quiet detokenize -m "$model"
    echo '|'
done
# A character cut in two.
quiet detokenize -m "$model" --json "$(quiet tokenize -m "$model" é | cut -d ' ' -f 1)"
