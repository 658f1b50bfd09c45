"""Golden files of tiny random models: checkpoints made here, written as GGUF, and what transformers says about them.

    python tools/oracle/golden_tiny.py [--only NAME] --out tests/golden/tiny

For each model: NAME.gguf, NAME.logits.f32 (little endian float32 [tokens][V], all positions of one text), and
NAME.raw.jsonl and NAME.golden (see golden_file.py). The reference computes in float32 on the values that the file's
types can hold.
"""

import argparse
from pathlib import Path

import golden_file
import greedy
import gguf_weights
import hf_models
import numpy as np
import tiny_models
import torch

NEW_TOKENS = 20
PENALTY = 1.3


def first_after(ids, step):
    """The first id from `step` on that did not come up before it: as an end id it ends the text there."""
    return next(i for at, i in enumerate(ids) if at >= step and i not in ids[:at])


def run_cases(model, spec, text):
    prompt = text[: spec.prompt]
    cases = [greedy.run(model, "greedy", prompt, NEW_TOKENS)]
    cases.append(greedy.run(model, "penalty", prompt, NEW_TOKENS, penalty=PENALTY))
    end = first_after(cases[1]["ids"], 6)  # with the penalty, because it always brings new ids
    cases.append(greedy.run(model, "end", prompt, NEW_TOKENS, penalty=PENALTY, end=[end]))
    cases.append(greedy.run(model, "one-token-prompt", text[:1], NEW_TOKENS))
    return cases


def check_read_back(path, model):
    """The file, read as any GGUF file is, must give the model it was written from."""
    read = hf_models.load(gguf_weights.File(path))
    again, buffers = read.state_dict(), dict(read.named_buffers())
    for name, weight in model.state_dict().items():
        assert torch.equal(weight, again[name]), f"{path.name}: {name} is not what was written"
    for name, values in model.named_buffers():
        if name.endswith("original_inv_freq"):  # of the model that was made; nothing reads it
            continue
        near = torch.allclose(values, buffers[name], rtol=1e-6)  # llama3: divided by what the file holds
        assert near, f"{path.name}: {name} is not what was written"


def make(spec, out):
    print(spec.name)
    torch.manual_seed(spec.seed)
    model = tiny_models.build(spec)
    path = out / f"{spec.name}.gguf"
    tiny_models.write(path, spec, model)
    check_read_back(path, model)
    text = np.random.default_rng(spec.seed).integers(0, spec.config["vocab_size"], spec.text).tolist()
    logits = greedy.whole(model, text, len(text)).numpy().astype("<f4")
    logits.tofile(out / f"{spec.name}.logits.f32")
    about = [f"file {spec.name}.gguf", f"sha256 {gguf_weights.sha256(path)}",
             f"vocabulary {spec.config['vocab_size']}", golden_file.counted("text", text)]
    head = golden_file.head_line("tools/oracle/golden_tiny.py", spec.seed)
    golden_file.write(out, spec.name, head, about, run_cases(model, spec, text))


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--only", choices=[spec.name for spec in tiny_models.SPECS], help="one model instead of all")
    arguments.add_argument("--out", type=Path, required=True, help="the directory of the golden files")
    given = arguments.parse_args()
    torch.set_num_threads(1)
    for spec in tiny_models.SPECS:
        if given.only in (None, spec.name):
            make(spec, given.out)


if __name__ == "__main__":
    main()
