# JSON Lines of several prompts and candidates, in order and in shape.
. "$CLI_LIB"
set -- generate --prompt-ids 1,2 --prompt-ids 3 --num-return 2 -n 3 --json
quiet "$@" -m random:llama-tiny --seed 7 | tee rows
quiet "$@" -m "$TINY/llama-text.gguf" --seed 18446744073709551615 --logprobs processed --top-k 3 | tee -a rows
python3 - <<'END'
import json
import re
lines = open("rows").read().split("\n")
assert lines.pop() == ""
keys = ["row", "index", "prompt_ids", "ids", "text", "logprobs", "finish_reason", "seed"]
places = [(0, 0), (0, 1), (1, 0), (1, 1)] * 2
for line, place in zip(lines, places, strict=True):
    row = json.loads(line)
    assert list(row) == keys, line
    assert (row["row"], row["index"]) == place, line
    assert len(row["ids"]) == len(row["logprobs"]) == 3 or row["finish_reason"] == "stop", line
    assert all(x <= 0 for x in row["logprobs"]), line
    # Nine digits carry a binary32 there and back.
    for word in re.search(r'"logprobs":\[([^]]*)\]', line).group(1).split(","):
        assert "%.9g" % float(word) == word, word
print(len(lines), "rows as they should be")
END
# Candidate 0 is the only one of --num-return 1.
quiet generate -m random:llama-tiny --seed 7 --prompt-ids 1,2 -n 3 --json
# As text: a line for each row, nothing else.
quiet generate -m random:llama-tiny --seed 7 --prompt-ids 1,2 --prompt-ids 3 --num-return 2 -n 3
