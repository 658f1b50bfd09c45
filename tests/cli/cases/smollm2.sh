# A real chat model: its answer, control tokens in text, and the advice for a prompt that is no conversation.
. "$CLI_LIB"
model=$MODELS/SmolLM2-135M-Instruct.Q4_1.gguf
need "$model"
chat='<|im_start|>user
What is the capital of France?<|im_end|>
<|im_start|>assistant
'
try generate -m "$model" -p "$chat" --greedy -n 20
try generate -m "$model" -p "Once upon a time" --greedy -n 8
try generate -m "$model" -p "$chat" --no-special --greedy -n 2
try generate -m "$model" -p "$chat" --greedy -n 20 --stop Paris
quiet generate -m "$model" -p "Once upon a time" --greedy -n 4 --json >first
quiet generate -m "$model" -p "Once upon a time" --greedy -n 4 --json --cpu base >second
sed 's/,"seed":.*//' first
[ "$(sed 's/,"seed":.*//' first)" = "$(sed 's/,"seed":.*//' second)" ] || echo "base is not auto"
try tokenize -m "$model" "<|im_start|>user"
try tokenize -m "$model" --no-special "<|im_start|>user"
try detokenize -m "$model" 1,4093
echo
try detokenize -m "$model" --no-special 1,4093
echo
# No start token is asked for by this file: an empty prompt is one.
try generate -m "$model" -p "" --greedy -n 2
