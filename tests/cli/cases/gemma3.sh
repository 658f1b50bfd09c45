# A real base model with a start token.
. "$CLI_LIB"
model=$MODELS/gemma-3-270m-q4_k_m.gguf
need "$model"
try generate -m "$model" -p "The capital of France is" --greedy -n 6
try tokenize -m "$model" "The capital of France"
try tokenize -m "$model" --no-bos "The capital of France"
try tokenize -m "$model" "<start_of_turn>user"
try tokenize -m "$model" --no-special "<start_of_turn>user"
quiet tokenize -m "$model" --no-bos "  two  spaces, żółć" | quiet detokenize -m "$model"
echo '|'
# The empty prompt begins with the start token.
quiet generate -m "$model" -p "" --greedy -n 2 --json | sed 's/,"logprobs.*//'
