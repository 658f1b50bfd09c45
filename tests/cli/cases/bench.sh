# Timing: what is measured and how it is told; figures vary and are replaced.
. "$CLI_LIB"

figures() {
    sed -E -e 's/-?[0-9]+\.[0-9]+(e[-+]?[0-9]+)?|[0-9]+e[-+]?[0-9]+/N/g' -e 's/ +N/ N/g' -e 's/"(peak_bytes|load_seconds)":[0-9]+/"\1":N/' \
        -e 's/set [a-z0-9]+,/set SET,/' -e 's/"cpu":"[a-z0-9]*"/"cpu":"SET"/' -e 's/[0-9]+ % of (reading|computing)/P % of LIMIT/' \
        -e 's/"bound":"[a-z]*"/"bound":"LIMIT"/g'
}

tiny() {
    quiet bench -m random:llama-tiny -t 2 --tokens 3 --repeat 2 "$@" | figures
}

# By default depth 1024 and a prefill of 512 are left out where the context is shorter.
tiny
tiny --json
# Each depth with the first batch, then the other batches with the first depth.
tiny --prefill 7 --depth 5,0,70 --batch 2,3 --json --compute exact --cache-type f16 --prefill-chunk 3
tiny --prefill 0 --depth 125 --batch 1
quiet bench -m random:llama-tiny --prefill 9 --tokens 0 --repeat 1 | figures | tail -n 2
quiet bench -m random:llama-tiny --prefill 9 --tokens 0 --repeat 1 --cpu base --json | grep -o '"cpu":"base"'

try bench
try bench -m random:llama-tiny --prefill 0 --tokens 0
try bench -m random:llama-tiny --prefill 129
try bench -m random:llama-tiny --prefill -1
try bench -m random:llama-tiny --prefill 2147483648
try bench -m random:llama-tiny --depth 0,126 --tokens 3
try bench -m random:llama-tiny --tokens 129
try bench -m random:llama-tiny --depth ''
try bench -m random:llama-tiny --depth 1,,2
try bench -m random:llama-tiny --batch 1,0
try bench -m random:llama-tiny --batch 65537
try bench -m random:llama-tiny --batch "$(seq -s , 65)"
try bench -m random:llama-tiny --repeat 0
try bench -m random:llama-tiny --repeat 1001
try bench -m random:llama-tiny --tokens 1.5
try bench -m random:llama-tiny -t 0
try bench -m random:llama-tiny --cache-type q8_0
try bench -m random:llama-tiny --temperature 1
try bench -m random:llama-tiny model.gguf
try bench -m none.gguf
