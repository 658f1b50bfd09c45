# Files that are no model, or none that can be run: one line, exit code 3.
. "$CLI_LIB"
bad() {
    try generate -m "$1" --prompt-ids 1 -n 1
}
model=$TINY/llama-text.gguf
bad none.gguf
bad .
bad ''
: >empty.gguf
bad empty.gguf
echo "no model at all, only text" >text.gguf
bad text.gguf
printf 'GGUF\0\0\0\3\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0' >foreign.gguf
bad foreign.gguf
printf 'GGUF\1\0\0\0' >old.gguf
bad old.gguf
printf 'GGUF\3\0\0\0\377\377\377\377\377\377\377\177\1\0\0\0\0\0\0\0' >hostile.gguf
bad hostile.gguf
for n in 3 10 24 100 5000 20000 31903; do
    head -c "$n" "$model" >cut.gguf
    bad cut.gguf
done
cp "$model" architecture.gguf
put architecture.gguf "$(($(offset "$model" general.architecture) + 32))" lemma
bad architecture.gguf
cp "$model" quantisation.gguf
put quantisation.gguf "$(($(offset "$model" token_embd.weight) + 37))" '\143'
bad quantisation.gguf
cp "$model" pretokenizer.gguf
put pretokenizer.gguf "$(offset "$model" gpt-2)" gpt-9
bad pretokenizer.gguf
cp "$model" tensor.gguf
put tensor.gguf "$(offset "$model" blk.1.ffn_down.weight)" blk.7
bad tensor.gguf
cp "$TINY/qwen2-tied-f16.gguf" bias.gguf
put bias.gguf "$(offset bias.gguf blk.1.attn_q.bias)" blk.7
bad bias.gguf
cp "$TINY/gpt2-f32.gguf" positions.gguf
put positions.gguf "$(offset positions.gguf position_embd.weight)" q
bad positions.gguf
try show cut.gguf
try tokenize -m text.gguf text
