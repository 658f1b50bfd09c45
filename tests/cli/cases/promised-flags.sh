# Scripts of users rely on these names; the help lists each.
. "$CLI_LIB"
quiet generate --help >generate
quiet tokenize --help >tokenize
for flag in -m --model -p --prompt --prompt-ids -f --file -n --max-tokens --max-length --greedy --do-sample --temperature \
    --top-k --top-p --min-p --repetition-penalty --stop --stop-id --eos-id --pad-id --ignore-eos --seed --num-return \
    --sampler -t --threads --cpu --compute --cache --max-cache-len --cache-type --max-rows --prefill-chunk --no-bos --no-special \
    --logprobs --json; do
    grep -q -E -e "^ +(-., )?$flag( |,|\$)" generate || echo "generate: no $flag"
done
for flag in --no-bos --no-special --json; do
    grep -q -E -e "^ +(-., )?$flag( |,|\$)" tokenize || echo "tokenize: no $flag"
done
grep -c -e '^    -' generate tokenize
