. "$CLI_LIB"
try --version
try --help
for command in generate tokenize detokenize show bench; do
    try "$command" --help
done
# All of it fits 100 columns.
for command in "" generate tokenize detokenize show bench; do
    # shellcheck disable=SC2086 # no word when there is no command
    quiet $command --help | awk 'length > 100'
done
