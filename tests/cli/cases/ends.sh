# What ends a row: the model's end id, ids of the caller, texts over token borders. Ids keep the end, text does not.
. "$CLI_LIB"
set -- generate -m "$TINY/llama-text.gguf" -p b --seed 53 -n 12 --json
quiet "$@" --ignore-eos >plain
cat plain
# The model's own end id is 399; with it, without it, and with another in its place.
quiet "$@" >own
cat own
grep -q ',399\],"text"' own || echo "no end id was drawn: take another seed"
quiet "$@" --eos-id 267
quiet "$@" --eos-id 5 | cmp - plain
# In addition to it.
quiet "$@" --stop-id 383
quiet "$@" --stop-id 5 | cmp - own
quiet "$@" --ignore-eos --stop-id 399 | cmp - own
# Texts within a token, over the border of two, and of more.
quiet "$@" --stop '!'
quiet "$@" --stop 'G!'
quiet "$@" --stop zzz --stop 'rit o'
# Text that begins a stop text is held back and comes when the row ends without it.
quiet "$@" --stop 'rit or' | cmp - own
# As text: the same.
quiet generate -m "$TINY/llama-text.gguf" -p b --seed 53 -n 12 --stop 'rit o'
# Rows of unequal length need a pad id that is one.
quiet generate -m "$TINY/llama-text.gguf" -p b -p c --seed 53 -n 8 --pad-id 0
