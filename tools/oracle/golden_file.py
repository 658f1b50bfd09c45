"""The two forms of a golden file: what the oracle said as JSON lines, and the same as lines of plain numbers.

A line of the plain form is a word, a count where numbers follow, and the numbers; `case NAME` begins a case:

    said N bytes       the prompt as text, in models with a vocabulary
    wrote N bytes      the new text without the end token
    prompt N ids       the ids that are fed
    penalty X          repetition penalty, 1: none
    end N ids          ids that end the text (they stay in it)
    limit N            most new tokens
    ids N ids          the new tokens
    logprobs N reals   log-softmax of the raw logits at the chosen ids, computed in float64
    processed N reals  the same of the penalised logits, where there is a penalty
    margins N reals    best minus second best score of each step: below 1e-3 the choice would not be meaningful
    top STEP N pairs   the best ids of one step, each with its raw logit
"""

import json
import platform
import sys
from importlib.metadata import version
from pathlib import Path

import torch

SMALLEST_MARGIN = 1e-3


def head_line(script, seed):
    versions = " ".join(f"{name} {version(name)}" for name in ("transformers", "torch", "gguf", "numpy", "tokenizers"))
    return (f"# {script}; {versions} python {platform.python_version()} {platform.machine()}; "
            f"float32, eager attention, {torch.get_num_threads()} thread; seed {seed}")


def numbers(values):
    return " ".join(format(value, ".9g") if isinstance(value, float) else str(value) for value in values)


def counted(word, values):
    return f"{word} {len(values)} {numbers(values)}".rstrip()


def case_lines(case):
    yield f"case {case['name']}"
    for key in ("said", "wrote"):
        if key in case:
            yield counted(key, case[key].encode())
    yield counted("prompt", case["prompt"])
    yield f"penalty {case['penalty']:g}"
    yield counted("end", case["end"])
    yield f"limit {case['limit']}"
    for key in ("ids", "logprobs", "processed", "margins"):
        if key != "processed" or case["penalty"] != 1:
            yield counted(key, case[key])
    for step in sorted({0, len(case["ids"]) // 2, len(case["ids"]) - 1}):
        pairs = [value for pair in zip(case["top_ids"][step], case["top_logits"][step]) for value in pair]
        yield f"top {step} {len(case['top_ids'][step])} {numbers(pairs)}"


def check_margins(cases):
    for case in cases:
        if min(case["margins"]) < SMALLEST_MARGIN:
            sys.exit(f"{case['name']}: margin {min(case['margins']):g}, below {SMALLEST_MARGIN}: choose another prompt")


def write(directory, name, head, about, cases):
    """NAME.raw.jsonl and NAME.golden; `about` are the plain form's lines before the cases."""
    check_margins(cases)
    raw = [json.dumps({"made_by": head, "about": about})] + [json.dumps(case) for case in cases]
    plain = [head, *about, f"cases {len(cases)}"] + [line for case in cases for line in case_lines(case)]
    Path(directory, f"{name}.raw.jsonl").write_text("\n".join(raw) + "\n")
    Path(directory, f"{name}.golden").write_text("\n".join(plain) + "\n")
