# Ctrl-C ends JSON Lines with a whole object for each row, the rows that never began too.
. "$CLI_LIB"
"$NIB" generate -m random:llama-tiny,max_seq_len=1000000 --prompt-ids 1 --prompt-ids 2 -n 900000 --seed 1 --json \
    >rows 2>err &
pid=$!
catches "$pid"
sleep 0.1
kill -INT "$pid"
code=0
wait "$pid" || code=$?
python3 - <<'END'
import json
for line in open("rows"):
    row = json.loads(line)
    print(row["row"], row["index"], row["prompt_ids"], row["finish_reason"], len(row["ids"]) == len(row["logprobs"]))
END
exit "$code"
