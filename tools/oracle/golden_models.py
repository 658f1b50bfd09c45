"""Golden files of real models: greedy generation by transformers on the dequantised weights of a GGUF file.

    python tools/oracle/golden_models.py --models DIR [--only smollm2|gemma3] --out tests/golden/models

For each model: NAME.raw.jsonl, what the oracle said (a line a case), and NAME.golden, the same as lines of plain
numbers for the C test. Nothing is random: the settings are greedy, float32, eager attention, one thread.
"""

import argparse
import json
import platform
import sys
from importlib.metadata import version
from pathlib import Path

import numpy as np
import torch
import transformers

import greedy
import gguf_weights
import hf_models
import token_ids

NEW_TOKENS = 32
SMALLEST_MARGIN = 1e-3  # logits; below it two right implementations may choose differently
TEXTS = Path(__file__).parent / "texts"
MODELS = {
    "smollm2": ("SmolLM2-135M-Instruct.Q4_1.gguf", ["capital", "chat", "story", "code", "essay"]),
    "gemma3": ("gemma-3-270m-q4_k_m.gguf", ["capital", "languages", "story", "code", "essay"]),
}


def head_line(script, seed="none"):
    return (f"# {script}; transformers {transformers.__version__} torch {torch.__version__} gguf {version('gguf')} "
            f"numpy {np.__version__} python {platform.python_version()} {platform.machine()}; "
            f"float32, eager attention; seed {seed}")


def numbers(values):
    return " ".join(format(value, ".9g") if isinstance(value, float) else str(value) for value in values)


def golden_lines(case):
    yield f"case {case['name']}"
    yield f"prompt {len(case['prompt'])} {numbers(case['prompt'])}"
    for key in ("ids", "logprobs", "margins"):
        yield f"{key} {len(case[key])} {numbers(case[key])}"
    for step in (0, NEW_TOKENS // 2, NEW_TOKENS - 1):
        pairs = [value for pair in zip(case["top_ids"][step], case["top_logits"][step]) for value in pair]
        yield f"top {step} {len(case['top_ids'][step])} {numbers(pairs)}"


def run_case(file, model, name):
    prompt = token_ids.encode(file, (TEXTS / f"{name}.txt").read_text(encoding="utf-8"))
    case = {"name": name, "prompt": prompt} | greedy.run(model, prompt, NEW_TOKENS)
    print(f"{name}: {len(prompt)} tokens, smallest margin {min(case['margins']):.3g}, "
          f"cached against uncached {case['cache_noise']:.2g}")
    if file.get("tokenizer.ggml.model") == "gpt2":
        print("   ", repr(token_ids.byte_level(file).decode(case["ids"], skip_special_tokens=False)))
    else:
        tokens = file.get("tokenizer.ggml.tokens")
        print("   ", repr("".join(tokens[i] for i in case["ids"]).replace("\u2581", " ")))
    if min(case["margins"]) < SMALLEST_MARGIN:
        sys.exit(f"{name}: a margin below {SMALLEST_MARGIN}: choose another text")
    return case


def make(name, models, out):
    file_name, texts = MODELS[name]
    file = gguf_weights.File(models / file_name)
    model = hf_models.load(file)
    cases = [run_case(file, model, text) for text in texts]
    head = head_line("tools/oracle/golden_models.py")
    with open(out / f"{name}.raw.jsonl", "w") as raw:
        about = {"made_by": head, "file": file_name, "sha256": gguf_weights.sha256(models / file_name)}
        raw.write(json.dumps(about) + "\n")
        raw.writelines(json.dumps(case) + "\n" for case in cases)
    lines = [head, f"file {file_name}", f"vocabulary {model.config.vocab_size}", f"cases {len(cases)}"]
    lines += [line for case in cases for line in golden_lines(case)]
    (out / f"{name}.golden").write_text("\n".join(lines) + "\n")


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--models", type=Path, required=True, help="the directory of the GGUF files")
    arguments.add_argument("--only", choices=MODELS, help="one model instead of all")
    arguments.add_argument("--out", type=Path, required=True, help="the directory of the golden files")
    given = arguments.parse_args()
    torch.set_num_threads(1)
    for name in [given.only] if given.only else MODELS:
        make(name, given.models, given.out)


if __name__ == "__main__":
    main()
