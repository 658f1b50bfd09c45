# Names and keys of random models, and sizes that cannot be: refused, not tried.
. "$CLI_LIB"
ask() {
    try generate -m "$1" --prompt-ids 1,2 -n 4 --seed 5
}
ask random:llama-tiny
ask random:llama-tiny,seed=1
ask random:llama-tiny,seed=18446744073709551615
ask random:gpt-tiny
ask random:gpt-tiny,vocab_size=100,n_layers=1,d_model=32,d_ff=16,n_heads=4
ask random:
ask random:lama-tiny
ask random:llama-tiny,
ask random:llama-tiny,layers=3
ask random:llama-tiny,seed=-1
ask random:llama-tiny,n_heads=0
ask random:llama-tiny,d_model=65
ask random:gpt-config,d_ff=99999999999999999999
ask random:gpt-config,vocab_size=200000000
ask random:gpt-config,vocab_size=2000000000,d_model=1200000
ask random:llama-tiny,vocab_size=1000000000
try generate -m random:llama-tiny -p text
try generate -m random:llama-tiny --prompt-ids 1 --stop text
try tokenize -m random:llama-tiny text
try detokenize -m random:llama-tiny 1
