# What ends a row: the model's end id, ids of the caller, texts over token borders. Ids keep the end, text does not.
. "$CLI_LIB"
set -- generate -m "$TINY/llama-text.gguf" -p b --seed 3 -n 12 --json
quiet "$@" --ignore-eos >plain
cat plain
# The model's own end id is 399; with it, without it, and with another in its place.
quiet "$@"
quiet "$@" --eos-id 345
quiet "$@" --eos-id 5
# In addition to it.
quiet "$@" --stop-id 34
quiet "$@" --ignore-eos --stop-id 399
# "il it" is two tokens.
quiet "$@" --stop 'l i'
quiet "$@" --stop zzz --stop 'l it'
quiet "$@" --stop il
# Text: the same.
quiet generate -m "$TINY/llama-text.gguf" -p b --seed 3 -n 12 --stop 'tC'
# Rows of unequal length need a pad id that is one.
quiet generate -m "$TINY/llama-text.gguf" -p b -p c --seed 3 -n 6 --pad-id 0
