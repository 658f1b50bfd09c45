"""How far a wrong formula moves the logits of the tiny models: what the bounds of the tests must lie below.

    python tools/oracle/planted_faults.py --golden tests/golden/tiny

Each fault is planted in the oracle; the figure is the largest difference over the golden text, as a fraction of the
largest logit.
"""

import argparse
from pathlib import Path

import greedy
import gguf_weights
import hf_models
import numpy as np
import torch


def scale_attention(model, factor):
    for layer in model.model.layers:
        layer.self_attn.scaling *= factor


def set_eps(model, eps):
    for module in model.modules():
        if hasattr(module, "variance_epsilon"):
            module.variance_epsilon = eps
        if hasattr(module, "eps"):
            module.eps = eps


def swap_rotation(model):
    """Pairs side by side taken for pairs half a head apart, in the keys of the first layer alone."""
    weight = model.model.layers[0].self_attn.k_proj.weight
    rows = weight.shape[0]
    with torch.no_grad():
        weight.copy_(weight.reshape(2, rows // 2, -1).swapaxes(0, 1).reshape(rows, -1))


def set_window(model, change):
    model.config.sliding_window += change


def scale_weight(model, name, factor):
    with torch.no_grad():
        model.get_parameter(name).mul_(factor)


FAULTS = {
    "attention scaled by 1.01": lambda model: scale_attention(model, 1.01),
    "norm epsilon 1e-4": lambda model: set_eps(model, 1e-4),
    "keys of layer 0 rotated in the other order": swap_rotation,
    "one norm of layer 0 times 1.01": lambda model: scale_weight(model, "model.layers.0.input_layernorm.weight", 1.01),
}
LLAMA_FAULTS = {  # gemma3's norm after attention takes it out again
    "values of the last layer times 1.01": lambda model: scale_weight(
        model, f"model.layers.{len(model.model.layers) - 1}.self_attn.v_proj.weight", 1.01),
}
GEMMA3_FAULTS = {
    "window one smaller": lambda model: set_window(model, -1),
    "window one larger": lambda model: set_window(model, 1),
    "embeddings scaled by 1.01": lambda model: model.model.embed_tokens.embed_scale.mul_(1.01),
}


def fault_sizes(golden):
    lines = dict(line.split(" ", 1) for line in golden.read_text().split("\ncases")[0].splitlines()[1:])
    text = [int(word) for word in lines["text"].split()[1:]]
    right = np.fromfile(golden.with_suffix(".logits.f32"), "<f4").reshape(len(text), -1)
    file = gguf_weights.File(golden.with_name(lines["file"]), check=False)
    faults = FAULTS | (GEMMA3_FAULTS if file.get("general.architecture") == "gemma3" else LLAMA_FAULTS)
    for name, plant in faults.items():
        model = hf_models.load(file)
        plant(model)
        yield name, np.abs(greedy.whole(model, text, len(text)).numpy() - right).max() / np.abs(right).max()


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--golden", type=Path, required=True)
    for golden in sorted(arguments.parse_args().golden.glob("*.golden")):
        if "\ntext " in golden.read_text():
            print(golden.stem)
            for name, size in fault_sizes(golden):
                print(f"  {size:.1e}  {name}")


if __name__ == "__main__":
    main()
