#!/usr/bin/env python3
"""Makes tests/golden/tokenizer: texts, two small vocabularies and the ids that the reference tokenizers give.

    pip install tokenizers sentencepiece protobuf gguf
    tools/golden-tokenizer.py [--cache DIRECTORY] [--only WORD]   (only the files of ids whose names hold the word)

The references are Hugging Face's `tokenizers`, set up with the splitters of the vocabularies' own tokenizer.json, and
`sentencepiece`. Without --cache only the small vocabularies are done; with it also the GGUF files in that directory
(script/fetch-models), each one that is there. Nothing is random: the same versions give the same files.

A file of ids: a line of versions, the vocabulary, the pre-tokenizer or -, the flags of encode, then for a long text made
of the texts (bytes, number of ids, hash), then for each text the number of ids and their hash, for GGUF files the ids.
The hash is FNV-1a, 64 bits, of the ids as 32-bit little-endian numbers."""

import argparse
import importlib.metadata
import io
import random
import struct
import unicodedata
from pathlib import Path

import sentencepiece
import tokenizers
from sentencepiece import sentencepiece_model_pb2
from tokenizers import AddedToken, Regex, models, pre_tokenizers

OUT = Path(__file__).resolve().parent.parent / "tests" / "golden" / "tokenizer"
NORMAL, UNKNOWN, CONTROL, USER_DEFINED = 1, 2, 3, 4
SPECIAL = 2  # NIB_TOKENIZE_SPECIAL
LONG_SEED, LONG_BYTES = 7, 2_000_000
FNV_OFFSET, FNV_PRIME, MASK = 0xCBF29CE484222325, 0x100000001B3, 2**64 - 1

CONTRACTION = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
LLAMA3 = CONTRACTION + r"|[^\r\n\p{L}\p{N}]?\p{L}+|%s| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
TEKKEN = (
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+"
    r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
CASED = (
    r"["
    r"A-Za-z\x{b5}\x{c0}-\x{d6}\x{d8}-\x{f6}\x{f8}-\x{1ba}\x{1bc}-\x{1bf}\x{1c4}-\x{293}\x{295}-\x{2af}"
    r"\x{370}-\x{373}\x{376}\x{377}\x{37b}-\x{37d}\x{37f}\x{386}\x{388}-\x{38a}\x{38c}\x{38e}-\x{3a1}"
    r"\x{3a3}-\x{3f5}\x{3f7}-\x{481}\x{48a}-\x{52f}\x{531}-\x{556}\x{10a0}-\x{10c5}\x{13a0}-\x{13f5}"
    r"\x{13f8}-\x{13fd}\x{1c90}-\x{1cba}\x{1cbd}-\x{1cbf}\x{1d00}-\x{1d2b}\x{1d6b}-\x{1d77}\x{1d79}-\x{1d9a}"
    r"\x{1e00}-\x{1f15}\x{1f18}-\x{1f1d}\x{1f20}-\x{1f45}\x{1f48}-\x{1f4d}\x{1f50}-\x{1f57}\x{1f59}\x{1f5b}"
    r"\x{1f5d}\x{1f5f}-\x{1f7d}\x{1f80}-\x{1fb4}\x{1fb6}-\x{1fbc}\x{1fbe}\x{1fc2}-\x{1fc4}\x{1fc6}-\x{1fcc}"
    r"\x{1fd0}-\x{1fd3}\x{1fd6}-\x{1fdb}\x{1fe0}-\x{1fec}\x{1ff2}-\x{1ff4}\x{1ff6}-\x{1ffc}\x{2102}\x{2107}"
    r"\x{210a}-\x{2113}\x{2115}\x{2119}-\x{211d}\x{2124}\x{2126}\x{2128}\x{212a}-\x{212d}\x{212f}-\x{2134}"
    r"\x{2139}\x{213c}-\x{213f}\x{2145}-\x{2149}\x{214e}\x{2183}\x{2184}\x{2c00}-\x{2c7b}\x{2c7e}-\x{2ce4}"
    r"\x{2ceb}-\x{2cee}\x{2cf2}\x{2cf3}\x{a640}-\x{a66d}\x{a680}-\x{a69b}\x{a722}-\x{a76f}\x{a771}-\x{a787}"
    r"\x{a78b}-\x{a78e}\x{ab70}-\x{abbf}\x{fb00}-\x{fb06}\x{fb13}-\x{fb17}\x{ff21}-\x{ff3a}\x{ff41}-\x{ff5a}"
    r"\x{10400}-\x{1044f}\x{104b0}-\x{104d3}\x{104d8}-\x{104fb}\x{10c80}-\x{10cb2}\x{10cc0}-\x{10cf2}"
    r"\x{118a0}-\x{118df}\x{1e900}-\x{1e943}"
    r"]+"
)
CJK = "[一-龥ࠀ-一가-퟿]+"
V3 = (
    r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+"
    r"| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)


def split(pattern):
    return pre_tokenizers.Split(Regex(pattern), "isolated")


def level(use_regex):
    return pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=use_regex)


DIGITS = pre_tokenizers.Digits(individual_digits=True)
SPLITTERS = {
    "gpt-2": [level(True)],
    "smollm": [DIGITS, level(True)],
    "llama-bpe": [split(LLAMA3 % r"\p{N}{1,3}"), level(False)],
    "qwen2": [split(LLAMA3 % r"\p{N}"), level(False)],
    "tekken": [split(TEKKEN), level(False)],
    "deepseek-llm": [
        *map(split, ("[\r\n]", r"\s?" + CASED, r"\s?[!-/:-~！-／：-～‘-‟　-。]+", r"\s+$", CJK)),
        DIGITS,
        level(False),
    ],
    "deepseek-coder": [*map(split, ("[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", CJK)), DIGITS, level(False)],
    "deepseek-v3": [*map(split, (r"\p{N}{1,3}", "[一-龥぀-ゟ゠-ヿ]+", V3)), level(False)],
}
WHOLE_WORDS = ("llama-bpe", "tekken")
NFC = ("qwen2",)

HAND = [
    "", " ", "  ", "   ", "    ", "\t", "\n", "\n\n", "\n\n\n", "\r\n", "\r\n\r\n", "\t\n", "\n\t", " \n", "\n ", " \n ", "\t\t\t\tx",
    "a", " a", "  a", "a ", "a  ", " a ", "a b", "a  b", "a   b", "a\tb", "a\nb", "a\n\nb", "a \n b", "a\r\nb", "x" * 40,
    "Hello world", " Hello world", "Hello, y'all! How are you?", "it's IT'S", "don't DON'T", "We'll we'LL", "I'm I'M i'M", "you're you'Re",
    "they've they'VE", "he'd he'D", "rock'n'roll", "'s", " 's", "''s", "'ſ", "o'clock", "d'être", "'tis", "l’été", "ﬆ 'ﬆ",
    "1", "12", "123", "1234", "12345", "1234567", "1 2 3", "3.14159", "1,000,000", "0x1F", "1e-9", "²³", "½", "٣٤٥", "१२३", "Ⅷ", "①②③", "a1b2c3",
    "v1.2.3-rc4", "2024-01-31T23:59:59Z", "+1 (555) 010-9999", "192.168.0.1", "100%", "$5.00", "€9,99", "5°C",
    "naïve café", "Straße STRASSE", "e\u0301", "n\u0303o", "a\u0300\u0316b", "\u0301", " \u0301", "Å Å Å", "ﬁ ﬂ ﬀ", "ŉ", "ǅ ǈ", "ʰʷ", "ᴬᴮ",
    "русский язык", "Ελληνικά ΣΊΣΥΦΟΣ", "עברית שָׁלוֹם", "العربية مرحبا", "हिन्दी नमस्ते", "ภาษาไทย สวัสดี", "ខ្មែរ សួស្តី", "ქართული", "Հայերեն",
    "中文", "你好，世界！", "日本語", "こんにちは世界", "カタカナ", "ｶﾀｶﾅ", "한국어 안녕", "漢字かな交じり文", "中文abc123", "𠀀𠮷", "龥龦", "퟿",
    "ᏣᎳᎩ", "አማርኛ", "বাংলা", "தமிழ்", "తెలుగు", "မြန်မာ", "བོད་སྐད", "ᠮᠣᠩᠭᠣᠯ", "a\u180eb", "\u180e",
    "👍", "👍🏽", "👨‍👩‍👧‍👦", "🇩🇪🇫🇷", "1️⃣", "❤️", "🤷🏾‍♀️", "☕️ ☕", "😀😀😀", "a😀b", "🏴󠁧󠁢󠁥󠁮󠁧󠁿",
    "\u00a0", "a\u00a0b", "\u3000", "a\u3000b", "\u2028", "\u0085", "\u200b", "a\u200bb", "\u200d", "\ufeff", "\u2009x", "\u202f5",
    "\x00", "a\x00b", "\x01\x02\x03", "\x04", "\x1b[0m", "\x7f", "\x08\x0b\x0c", "\ufffd", "\uffff", "\ue000", "\U000f0000", "\U0010ffff",
    "int main(void) {\n    return 0;\n}\n", "for (i = 0; i < n; i++) {\n\tx[i] += y[i];\n}", "def f(x):\n    return x ** 2\n\n\n", "a->b::c<d>",
    "if (!a && b || c) { }", "/* c */ // d", "#include <stdio.h>", "<div class=\"a\">b</div>", "{\"a\": [1, 2, null]}", "SELECT * FROM t WHERE a='b';",
    "x\t\t=\t1\n", "    indented\n        more\n", "\n\n\n\nx", "x\n\n\n\n", "trailing   ", "   leading", "~~~", "---", "===", "***", "......", "!?!?!", "__init__",
    "fooBar FooBar FOOBar foo_bar FOO_BAR", "camelCaseXMLHttp", "iPhone iOS macOS", "ALL CAPS", "MiXeD", "a.b.c", "www.example.org/a?b=c&d=e#f",
    "user@example.org", "C:\\Windows\\x", "/usr/local/bin", "a/b\n/c", "\\n \\t \\x", "``code``", "“quoted” ‘single’ «guillemets» 「括弧」", "em—dash en–dash",
    "<|endoftext|>", "<|im_start|>user\nhi<|im_end|>", "a<|endoftext|>b", " <|endoftext|> ", "<|endoftext", "<s>", "</s>", "a<s> b", "<s>b", "<bos>", "<eos>a",
    "<unk>", "<start_of_turn>user", "<|begin_of_text|>x", "<table><tr>", "\u2581", "a\u2581b", "\u2581\u2581", "Ġ Ċ Ā", "õ÷Á", "<0x0A>", "[PAD151646]",
]  # fmt: skip


def make_texts():
    """HAND and 120 mixtures of it with letters from everywhere."""
    chance = random.Random(1)
    texts = list(HAND)
    while len(texts) < len(HAND) + 120:
        text = ""
        for _ in range(chance.randint(2, 8)):
            if chance.random() < 0.7:
                text += chance.choice((" ", "", "", "\n")) + chance.choice(HAND)
            else:
                text += "".join(chance.choice(LETTERS) for _ in range(chance.randint(1, 4)))
        texts.append(text)
    return [text.encode() for text in texts]


# Characters below U+20000 that Unicode 14 knows: what is newer may be classed otherwise (docs/tokenizers.md).
LETTERS = [chr(i) for i in range(0x20000) if unicodedata.category(chr(i)) not in ("Cn", "Cs")]


def long_text(texts):
    """Texts picked by SplitMix64's output function of the counter, until there are LONG_BYTES."""
    out = io.BytesIO()
    item = 0
    while out.tell() < LONG_BYTES:
        z = (LONG_SEED + (item + 1) * 0x9E3779B97F4A7C15) & MASK
        z = ((z ^ z >> 30) * 0xBF58476D1CE4E5B9) & MASK
        z = ((z ^ z >> 27) * 0x94D049BB133111EB) & MASK
        out.write(texts[(z ^ z >> 31) % len(texts)])
        item += 1
    return out.getvalue()


def hash_ids(ids):
    return hash_bytes(struct.pack(f"<{len(ids)}i", *ids))


def hash_bytes(data):
    value = FNV_OFFSET
    for byte in data:
        value = ((value ^ byte) * FNV_PRIME) & MASK
    return value


def versions():
    names = ("tokenizers", "sentencepiece", "gguf")
    return "# " + ", ".join(f"{name} {importlib.metadata.version(name)}" for name in names) + "\n"


def write_ids(name, vocabulary, pre, flags, encode, texts, with_ids):
    if ONLY not in name:
        return
    long_ids = encode([long_text(texts)])[0]
    lines = [versions(), f"{vocabulary} {pre} {flags}\n", f"{LONG_BYTES} {len(long_ids)} {hash_ids(long_ids):016x}\n"]
    for ids in encode(texts):
        shown = "".join(f" {i}" for i in ids) if with_ids else ""
        lines.append(f"{len(ids)} {hash_ids(ids):016x}{shown}\n")
    (OUT / name).write_text("".join(lines))


def byte_level(vocabulary, merges, types, pre):
    """A tokenizer of `tokenizers`; vocabulary: texts in the order of their ids."""
    ids = {text: i for i, text in enumerate(vocabulary)}
    tokenizer = tokenizers.Tokenizer(models.BPE(ids, merges, ignore_merges=pre in WHOLE_WORDS))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(SPLITTERS[pre])
    if pre in NFC:
        tokenizer.normalizer = tokenizers.normalizers.NFC()
    of_type = lambda kind: [text for text, t in zip(vocabulary, types) if t == kind]
    tokenizer.add_special_tokens([AddedToken(text, normalized=False) for text in of_type(CONTROL)])
    tokenizer.add_tokens([AddedToken(text, normalized=False) for text in of_type(USER_DEFINED)])
    return lambda texts: [e.ids for e in tokenizer.encode_batch([t.decode() for t in texts], add_special_tokens=False)]


def sentence_piece(pieces, prefix, unknown):
    """A processor of `sentencepiece`; pieces: (text, score, type)."""
    proto = sentencepiece_model_pb2.ModelProto()
    for text, score, kind in pieces:
        text = text.replace(" ", "\u2581") if kind == USER_DEFINED else text
        proto.pieces.add(piece=text, score=score, type=kind)
    proto.trainer_spec.model_type = 2
    proto.trainer_spec.byte_fallback = True
    proto.trainer_spec.unk_id = unknown
    proto.trainer_spec.bos_id = proto.trainer_spec.eos_id = proto.trainer_spec.pad_id = -1
    proto.normalizer_spec.name = "identity"
    proto.normalizer_spec.add_dummy_prefix = prefix
    proto.normalizer_spec.remove_extra_whitespaces = False
    proto.normalizer_spec.escape_whitespaces = True
    processor = sentencepiece.SentencePieceProcessor()
    processor.LoadFromSerializedProto(proto.SerializeToString())
    return lambda texts: [processor.EncodeAsIds(text.decode()) for text in texts]


def tiny_byte_level(texts):
    """A vocabulary of 1,000 trained without a splitter: its merges cross every border, so that each splitter shows."""
    tokenizer = tokenizers.Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = level(False)
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=1000, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), max_token_length=12, show_progress=False
    )
    tokenizer.train_from_iterator([text.decode() for text in texts], trainer)
    buffer = tokenizer.to_str()
    import json

    model = json.loads(buffer)["model"]
    vocabulary = sorted(model["vocab"], key=model["vocab"].get)
    merges = [tuple(merge) for merge in model["merges"]]
    lines = [versions(), f"tokens {len(vocabulary) + 1}\n"]
    lines += [f"{text}\n" for text in vocabulary] + ["<|endoftext|>\n", f"merges {len(merges)}\n"]
    lines += [f"{left} {right}\n" for left, right in merges]
    (OUT / "tiny-bpe.txt").write_text("".join(lines))
    types = [NORMAL] * len(vocabulary) + [CONTROL]
    for pre in SPLITTERS:
        encode = byte_level(vocabulary + ["<|endoftext|>"], merges, types, pre)
        write_ids(f"ids-tiny-{pre}.txt", "tiny-bpe.txt", pre, SPECIAL, encode, texts, False)


def tiny_sentence_piece(texts):
    """A vocabulary of 1,200 with byte tokens; its texts are written in hexadecimal."""
    model = io.BytesIO()
    sentences = [line for text in texts for line in text.decode().replace("\0", "").split("\n") if line.strip()]
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(sentences), model_writer=model, model_type="bpe", vocab_size=1200, byte_fallback=True,
        character_coverage=0.98, hard_vocab_limit=False, normalization_rule_name="identity", user_defined_symbols=["<table>", "▁▁"],
        remove_extra_whitespaces=False, split_by_whitespace=False, minloglevel=2, num_threads=1,
    )  # fmt: skip
    proto = sentencepiece_model_pb2.ModelProto.FromString(model.getvalue())
    pieces = [(p.piece, p.score, p.type) for p in proto.pieces]
    lines = [versions(), f"pieces {len(pieces)}\n"]
    lines += [f"{text.encode().hex()} {score:.9g} {kind}\n" for text, score, kind in pieces]
    (OUT / "tiny-spm.txt").write_text("".join(lines))
    for name, prefix in (("plain", False), ("prefix", True)):
        # sentencepiece puts a space before the text only; behind a user-defined token nib does as `tokenizers` does.
        kept = [(text, score, NORMAL if prefix and kind == USER_DEFINED else kind) for text, score, kind in pieces]
        write_ids(f"ids-tiny-spm-{name}.txt", "tiny-spm.txt", name, 0, sentence_piece(kept, prefix, 0), texts, False)


def from_gguf(path, name, texts):
    import gguf

    fields = gguf.GGUFReader(path).fields
    get = lambda key: fields["tokenizer.ggml." + key].contents() if "tokenizer.ggml." + key in fields else None
    vocabulary, types = get("tokens"), get("token_type")
    if get("model") == "gpt2":
        merges = [tuple(merge.split(" ")) for merge in get("merges")]
        encode = byte_level(vocabulary, merges, types, get("pre"))
        write_ids(f"ids-{path.stem}.txt", name, get("pre"), SPECIAL, encode, texts, True)
        return
    prefix = get("add_space_prefix")
    pieces = list(zip(vocabulary, get("scores"), types))
    encode = sentence_piece(pieces, prefix is None or bool(prefix), get("unknown_token_id"))
    write_ids(f"ids-{path.stem}.txt", name, "-", 0, encode, texts, True)


def write_known(known):
    """Runs of the characters that the following are made of, first and last."""
    runs = []
    for code in map(ord, known):
        if runs and runs[-1][1] == code - 1:
            runs[-1][1] = code
        else:
            runs.append([code, code])
    lines = "".join(f"{first:x} {last:x}\n" for first, last in runs)
    (OUT / "known.txt").write_text(f"# unicodedata {unicodedata.unidata_version}\n{lines}")


def write_normal_forms(known):
    """The hash of the normal form C of a text of all characters, then texts and their normal forms in hexadecimal."""
    chance = random.Random(2)
    normal = lambda text: unicodedata.normalize("NFC", text).encode()
    whole = "".join(f"e{c}\u0327{c}\u0301" for c in known)
    marks = [c for c in known if unicodedata.combining(c)]
    parts = [c for c in known if unicodedata.decomposition(c) or "\uac00" <= c < "\uac40" or "\u1100" <= c < "\u1200"]
    lines = [f"# unicodedata {unicodedata.unidata_version}\n", f"{hash_bytes(normal(whole)):016x}\n"]
    for _ in range(300):
        choices = (lambda: chance.choice(parts), lambda: chance.choice(marks), lambda: chance.choice("ao\u0301"))
        text = "".join(chance.choice(choices)() for _ in range(chance.randint(1, 8)))
        lines.append(f"{text.encode().hex()} {normal(text).hex()}\n")
    (OUT / "nfc.txt").write_text("".join(lines))


def write_cuts(known):
    """For each pre-tokenizer the number of words of a text of all characters and the hash of their lengths in bytes."""
    text = "".join(f"e{c} {c}1{c}!{c}\n{c}  E{c}{c} " for c in known)
    lines = [versions()]
    for name, splitter in SPLITTERS.items():
        # Each stand-in letter of the byte level is a byte.
        lengths = [len(word) for word, _ in pre_tokenizers.Sequence(splitter).pre_tokenize_str(text)]
        lines.append(f"{name} {len(lengths)} {hash_ids(lengths):016x}\n")
    (OUT / "cuts.txt").write_text("".join(lines))


def main():
    global ONLY
    parser = argparse.ArgumentParser()
    parser.add_argument("--cache", type=Path)
    parser.add_argument("--only", default="")
    cache, ONLY = vars(parser.parse_args()).values()
    OUT.mkdir(parents=True, exist_ok=True)
    texts = make_texts()
    known = [chr(i) for i in range(1, 0x110000) if unicodedata.category(chr(i)) not in ("Cn", "Cs")]
    write_known(known)
    write_normal_forms(known)
    write_cuts(known)
    (OUT / "texts.txt").write_text(versions() + "".join(text.hex() + "\n" for text in texts))
    tiny_byte_level(texts)
    tiny_sentence_piece(texts)
    names = ["SmolLM2-135M-Instruct.Q4_1.gguf", "gemma-3-270m-q4_k_m.gguf"]
    families = ("gpt-2", "llama-bpe", "qwen2", "deepseek-llm", "deepseek-coder", "llama-spm")
    names += [f"llama-cpp/models/ggml-vocab-{family}.gguf" for family in families]
    for name in names:
        if cache and ONLY in f"ids-{Path(name).stem}.txt" and (cache / name).exists():
            from_gguf(cache / name, name, texts)


main()
