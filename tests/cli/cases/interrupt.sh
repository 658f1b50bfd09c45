# Ctrl-C ends text after what was generated, with a newline and exit code 130.
. "$CLI_LIB"
"$NIB" generate -m random:llama-tiny,max_seq_len=1000000 --prompt-ids 1 -n 900000 --seed 1 >text 2>err &
pid=$!
catches "$pid"
while [ ! -s text ] && kill -0 "$pid"; do
    sleep 0.02
done
kill -INT "$pid"
code=0
wait "$pid" || code=$?
head -n 1 text | cut -d ' ' -f 1
wc -l <text
grep -c seed err
exit "$code"
