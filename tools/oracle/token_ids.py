"""Token ids of a text by the vocabulary in a GGUF file. Prompts of golden files only need ids that make sense; nib's
own tokenizers are compared with other data elsewhere."""

import tokenizers
from tokenizers import decoders, models, pre_tokenizers

USER_DEFINED, CONTROL = 4, 3


def byte_level(file):
    """The tokenizer of a `gpt2` vocabulary: the GPT-2 splitter, with smollm's single digits before it."""
    tokens = file.get("tokenizer.ggml.tokens")
    merges = [tuple(merge.split(" ")) for merge in file.get("tokenizer.ggml.merges")]
    tokenizer = tokenizers.Tokenizer(models.BPE({token: i for i, token in enumerate(tokens)}, merges))
    steps = [pre_tokenizers.ByteLevel(add_prefix_space=False)]
    if file.get("tokenizer.ggml.pre") == "smollm":
        steps.insert(0, pre_tokenizers.Digits(individual_digits=True))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(steps)
    tokenizer.decoder = decoders.ByteLevel()
    types = file.get("tokenizer.ggml.token_type")
    tokenizer.add_special_tokens([token for token, kind in zip(tokens, types) if kind == CONTROL])
    return tokenizer


def merged_by_score(text, scores):
    """SentencePiece's rule, the slow way: join the pair of the highest score, the leftmost of equals, to the end."""
    parts = list(text)
    while True:
        pairs = [(scores[a + b], -i) for i, (a, b) in enumerate(zip(parts, parts[1:])) if a + b in scores]
        if not pairs:
            return parts
        i = -max(pairs)[1]
        parts[i : i + 2] = [parts[i] + parts[i + 1]]


def split_off(text, fixed):
    """Cuts text at user-defined tokens, the longest first: (piece, is one of them)."""
    longest, start, i = max(map(len, fixed), default=0), 0, 0
    while i < len(text):
        found = next((text[i : i + n] for n in range(longest, 0, -1) if text[i : i + n] in fixed), None)
        if found is None:
            i += 1
            continue
        if i > start:
            yield text[start:i], False
        yield found, True
        i += len(found)
        start = i
    if start < len(text):
        yield text[start:], False


def sentencepiece(file, text):
    tokens, types = file.get("tokenizer.ggml.tokens"), file.get("tokenizer.ggml.token_type")
    ids = {token: i for i, token in enumerate(tokens)}
    scores = dict(zip(tokens, file.get("tokenizer.ggml.scores")))
    fixed = {token for token, kind in zip(tokens, types) if kind == USER_DEFINED}
    out = [file.get("tokenizer.ggml.bos_token_id")] if file.get("tokenizer.ggml.add_bos_token") else []
    for piece, is_fixed in split_off(text, fixed):  # their spaces are spaces, those of the others U+2581
        for part in [piece] if is_fixed else merged_by_score(piece.replace(" ", "\u2581"), scores):
            out += [ids[part]] if part in ids else [ids[f"<0x{byte:02X}>"] for byte in part.encode()]
    return out


def encode(file, text):
    if file.get("tokenizer.ggml.model") == "gpt2":
        return byte_level(file).encode(text, add_special_tokens=False).ids
    return sentencepiece(file, text)


def decode(file, ids):
    """For the eye: control tokens are shown, bytes of SentencePiece are not joined."""
    if file.get("tokenizer.ggml.model") == "gpt2":
        return byte_level(file).decode(ids, skip_special_tokens=False)
    tokens = file.get("tokenizer.ggml.tokens")
    return "".join(tokens[i] for i in ids).replace("\u2581", " ")
