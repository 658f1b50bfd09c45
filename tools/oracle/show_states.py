"""Prints what a GGUF file's model holds after every layer, to find the layer where another implementation leaves it.

    python tools/oracle/show_states.py FILE.gguf 17,4,250 [--position P] [--values N]

Line 0 is the embedding (scaled, if the model does that), line i the stream after layer i; the last is after the last
norm. Each line: the root of the mean square, then the first values at the position (the last one unless given).
"""

import argparse

import gguf_weights
import hf_models
import torch


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("file")
    arguments.add_argument("ids", help="token ids, with commas")
    arguments.add_argument("--position", type=int, default=-1)
    arguments.add_argument("--values", type=int, default=6)
    given = arguments.parse_args()
    ids = [int(word) for word in given.ids.split(",")]
    model = hf_models.load(gguf_weights.File(given.file))
    streams = []
    for layer in model.model.layers:
        layer.register_forward_pre_hook(lambda _, inputs: streams.append(inputs[0]))
    model.model.norm.register_forward_pre_hook(lambda _, inputs: streams.append(inputs[0]))
    model.model.norm.register_forward_hook(lambda _, __, output: streams.append(output))
    with torch.no_grad():
        logits = model(torch.tensor([ids]), use_cache=False).logits[0, given.position]
    for i, stream in enumerate(streams):
        values = stream[0, given.position]
        first = " ".join(f"{value:.6g}" for value in values[: given.values].tolist())
        print(f"{i:3d}  rms {values.square().mean().sqrt().item():.6g}  {first}")
    top = logits.topk(5)
    print("top", " ".join(f"{i}:{value:.6g}" for i, value in zip(top.indices.tolist(), top.values.tolist())))


if __name__ == "__main__":
    main()
