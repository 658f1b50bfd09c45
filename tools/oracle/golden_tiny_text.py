"""Golden file of a tiny random model with a vocabulary of its own: text goes in, text comes out and ends by itself.

    python tools/oracle/golden_tiny_text.py --out tests/golden/tiny

Writes llama-text.gguf, .raw.jsonl and .golden. The vocabulary is a small byte-level BPE learned from texts/. The end
token is made to come up: the rows of the embedding (which is the head too) of the end token and of one that greedy
decoding gave are exchanged. Rows of bytes beyond ASCII are zero, so that what is written is whole characters.
"""

import argparse
import json
from pathlib import Path

import golden_file
import greedy
import gguf_weights
import hf_models
import tiny_models
import token_ids
import torch
from gguf import GGMLQuantizationType as Type
from tokenizers import Tokenizer, models, pre_tokenizers, trainers

TEXTS = Path(__file__).parent / "texts"
PROMPTS = {
    "prose": "The river stood at 212 cm, and it's falling.\n\n  Wait until May.",
    "code": "def mean(self):\n\treturn sum(items) / 3.0  # caf\u00e9 \u4f60\u597d \U0001f30a",
    "one-letter": "T",
}
END, VOCABULARY, LIMIT = "<|end|>", 400, 40
NORMAL, CONTROL = 1, 3


def learn():
    """Tokens and merges: 256 bytes, what the texts teach, the end token last."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=VOCABULARY - 1, initial_alphabet=alphabet, show_progress=False)
    texts = sorted(TEXTS.glob("*.txt"))
    tokenizer.train_from_iterator([text.read_text(encoding="utf-8") for text in texts], trainer)
    vocabulary = tokenizer.get_vocab()
    tokens = sorted(vocabulary, key=vocabulary.get) + [END]
    merges = [" ".join(pair) for pair in json.loads(tokenizer.to_str())["model"]["merges"]]
    return tokens, merges


def tokenizer_writer(tokens, merges):
    def add(writer):
        writer.add_tokenizer_model("gpt2")
        writer.add_tokenizer_pre("gpt-2")
        writer.add_token_list(tokens)
        writer.add_token_types([NORMAL] * (len(tokens) - 1) + [CONTROL])
        writer.add_token_merges(merges)
        writer.add_eos_token_id(len(tokens) - 1)
        writer.add_add_bos_token(False)

    return add


def is_ascii(token):
    """Byte-level tokens spell other bytes as letters beyond ASCII; space, tab and newline have such letters too."""
    return all(letter in "\u0120\u0109\u010a" or "!" <= letter <= "~" for letter in token)


def prepare(spec, model, tokens, prompt):
    """Zero the rows that would write broken characters, then exchange two so that the end token ends this prompt."""
    data, _ = spec.stored["model.embed_tokens.weight"]
    data[[i for i, token in enumerate(tokens) if not is_ascii(token)]] = 0
    set_embedding(spec, model)
    ids = greedy.generate(model, prompt, LIMIT, 1.3, [])[0]
    chosen = next(i for at, i in enumerate(ids) if at >= 12 and i not in ids[:at] + prompt)
    data[[chosen, -1]] = data[[-1, chosen]]
    set_embedding(spec, model)


def set_embedding(spec, model):
    data, raw_type = spec.stored["model.embed_tokens.weight"]
    with torch.no_grad():
        model.model.embed_tokens.weight.copy_(torch.from_numpy(gguf_weights.dequantise(data, raw_type)))


def run_case(model, tokenizer, name):
    text, end = PROMPTS[name], VOCABULARY - 1
    prompt = tokenizer.encode(text, add_special_tokens=False).ids
    case = greedy.run(model, name, prompt, LIMIT, penalty=1.3, end=[end])
    case["said"] = text
    case["wrote"] = tokenizer.decode([i for i in case["ids"] if i != end])
    print("   ", repr(case["wrote"]))
    return case


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--out", type=Path, required=True, help="the directory of the golden files")
    out = arguments.parse_args().out
    torch.set_num_threads(1)
    spec = tiny_models.llama("llama-text", 9, [Type.F16], V=VOCABULARY, D=16, F=32, L=2, H=2, K=1, E=8, context=192,
                             tied=True)
    torch.manual_seed(spec.seed)
    tokens, merges = learn()
    model = tiny_models.build(spec)
    path = out / f"{spec.name}.gguf"
    tiny_models.write(path, spec, model, tokenizer_writer(tokens, merges))
    tokenizer = token_ids.byte_level(gguf_weights.File(path))
    prepare(spec, model, tokens, tokenizer.encode(PROMPTS["prose"], add_special_tokens=False).ids)
    tiny_models.write(path, spec, model, tokenizer_writer(tokens, merges))
    model = hf_models.load(gguf_weights.File(path))
    about = [f"file {spec.name}.gguf", f"sha256 {gguf_weights.sha256(path)}", f"vocabulary {VOCABULARY}"]
    head = golden_file.head_line("tools/oracle/golden_tiny_text.py", spec.seed)
    golden_file.write(out, spec.name, head, about, [run_case(model, tokenizer, name) for name in PROMPTS])


if __name__ == "__main__":
    main()
