"""Golden files of real models: greedy generation by transformers on the dequantised weights of a GGUF file.

    python tools/oracle/golden_models.py --models DIR [--only smollm2|gemma3] --out tests/golden/models

For each model: NAME.raw.jsonl and NAME.golden (see golden_file.py). Nothing is random.
"""

import argparse
from pathlib import Path

import golden_file
import greedy
import gguf_weights
import hf_models
import token_ids
import torch

NEW_TOKENS = 32
TEXTS = Path(__file__).parent / "texts"
MODELS = {
    "smollm2": ("SmolLM2-135M-Instruct.Q4_1.gguf", ["capital", "chat", "story", "code", "essay"]),
    "gemma3": ("gemma-3-270m-q4_k_m.gguf", ["capital", "languages", "story", "code", "essay"]),
}


def run_case(file, model, name):
    text = (TEXTS / f"{name}.txt").read_text(encoding="utf-8")
    case = {"said": text} | greedy.run(model, name, token_ids.encode(file, text), NEW_TOKENS)
    print("   ", repr(token_ids.decode(file, case["ids"])))
    return case


def make(name, models, out):
    file_name, texts = MODELS[name]
    file = gguf_weights.File(models / file_name)
    model = hf_models.load(file)
    about = [f"file {file_name}", f"sha256 {gguf_weights.sha256(models / file_name)}",
             f"vocabulary {model.config.vocab_size}"]
    cases = [run_case(file, model, text) for text in texts]
    golden_file.write(out, name, golden_file.head_line("tools/oracle/golden_models.py", "none"), about, cases)


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
