"""Asks llama.cpp, by its Python package, for the logits and greedy ids of the tiny models and compares with the
golden files.

    python tools/oracle/llamacpp_check.py tests/golden/tiny

Needs llama-cpp-python. llama.cpp computes partly in float16 and int8, so the logits are only near; it opens no file
whose vocabulary key is missing, which is said.
"""

import argparse
import json
from pathlib import Path

import llama_cpp
import numpy as np


SILENT = llama_cpp.llama_log_callback(lambda *_: None)  # kept, because llama.cpp calls it later too


def open_model(path):
    llama_cpp.llama_log_set(SILENT, None)
    parameters = llama_cpp.llama_model_default_params()
    parameters.use_mmap = False
    return llama_cpp.llama_model_load_from_file(str(path).encode(), parameters)


def new_context(model, room):
    parameters = llama_cpp.llama_context_default_params()
    parameters.n_ctx = parameters.n_batch = parameters.n_ubatch = room
    parameters.n_threads = parameters.n_threads_batch = 1
    parameters.type_k = parameters.type_v = llama_cpp.GGML_TYPE_F32
    parameters.flash_attn_type = llama_cpp.LLAMA_FLASH_ATTN_TYPE_DISABLED
    return llama_cpp.llama_init_from_model(model, parameters)


def logits_of(context, ids, first, V):
    """Feeds ids at positions first..: logits [n, V] of all of them."""
    batch = llama_cpp.llama_batch_init(len(ids), 0, 1)
    batch.n_tokens = len(ids)
    for i, token in enumerate(ids):
        batch.token[i], batch.pos[i], batch.n_seq_id[i], batch.logits[i] = token, first + i, 1, 1
        batch.seq_id[i][0] = 0
    code = llama_cpp.llama_decode(context, batch)
    assert code == 0, f"llama_decode: {code}"
    logits = [np.ctypeslib.as_array(llama_cpp.llama_get_logits_ith(context, i), (V,)).copy() for i in range(len(ids))]
    llama_cpp.llama_batch_free(batch)
    return np.array(logits)


def greedy(model, prompt, n, V):
    context = new_context(model, 256)
    ids, feed, at = [], prompt, 0
    while len(ids) < n:
        best = int(logits_of(context, feed, at, V)[-1].argmax())
        at += len(feed)
        ids.append(best)
        feed = [best]
    llama_cpp.llama_free(context)
    return ids


def check(golden):
    """A line about one model; whether it was opened and its ids are the same."""
    lines = [json.loads(line) for line in golden.read_text().splitlines()]
    about = {line.split()[0]: line.split()[1:] for line in lines[0]["about"]}
    model = open_model(golden.parent / about["file"][0])
    if not model:
        return f"{about['file'][0]}: not opened", False
    V, text = int(about["vocabulary"][0]), [int(word) for word in about["text"][1:]]
    context = new_context(model, 256)
    theirs = logits_of(context, text, 0, V)
    llama_cpp.llama_free(context)
    ours = np.fromfile(str(golden).replace(".raw.jsonl", ".logits.f32"), "<f4").reshape(len(text), V)
    distance = np.abs(theirs - ours).max() / np.abs(ours).max()
    case = lines[1]
    ids = greedy(model, case["prompt"], len(case["ids"]), V)
    llama_cpp.llama_model_free(model)
    same = next((i for i, pair in enumerate(zip(ids, case["ids"])) if pair[0] != pair[1]), len(ids))
    return f"{about['file'][0]}: logits differ by {distance:.1e} of the largest, {same} of {len(ids)} ids", same == len(ids)


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("directory", type=Path)
    directory = arguments.parse_args().directory
    llama_cpp.llama_backend_init()
    results = [check(path) for path in sorted(directory.glob("*.raw.jsonl")) if "-text" not in path.name]
    print("\n".join(line for line, _ in results))
    print(f"{sum(same for _, same in results)} of {len(results)} give the same ids")


if __name__ == "__main__":
    main()
