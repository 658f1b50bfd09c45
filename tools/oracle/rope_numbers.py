"""The rotary frequencies that transformers computes, as a header for a unit test.

    python tools/oracle/rope_numbers.py > tests/unit/rope_numbers.h
"""

from transformers import LlamaConfig
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

LLAMA3 = {"rope_type": "llama3", "low_freq_factor": 1.0, "high_freq_factor": 4.0,
          "original_max_position_embeddings": 8192}
CASES = [
    (64, {"rope_type": "linear", "rope_theta": 10000.0, "factor": 2.5}),
    (64, LLAMA3 | {"rope_theta": 500000.0, "factor": 32.0}),
    (128, LLAMA3 | {"rope_theta": 500000.0, "factor": 8.0}),
    (128, {"rope_type": "yarn", "rope_theta": 1e6, "factor": 4.0, "original_max_position_embeddings": 32768}),
    (64, {"rope_type": "yarn", "rope_theta": 10000.0, "factor": 16.0, "original_max_position_embeddings": 4096}),
    (80, {"rope_type": "yarn", "rope_theta": 150000.0, "factor": 32.0, "original_max_position_embeddings": 4096,
          "beta_fast": 16.0, "beta_slow": 2.0}),
]


def initializer(width, rope):
    config = LlamaConfig(hidden_size=width, num_attention_heads=1, head_dim=width, rope_parameters=rope,
                         max_position_embeddings=int(rope.get("original_max_position_embeddings", 2048)))
    freq, magnitude = ROPE_INIT_FUNCTIONS[rope["rope_type"]](config, "cpu")
    kind = {"linear": "NIB_ROPE_LINEAR", "yarn": "NIB_ROPE_YARN", "llama3": "NIB_ROPE_PLAIN"}[rope["rope_type"]]
    numbers = [format(value, ".9g") for value in freq.tolist()]
    lines = ",\n      ".join(", ".join(numbers[i : i + 6]) for i in range(0, len(numbers), 6))
    keys = (rope["rope_theta"], rope["factor"], rope.get("original_max_position_embeddings", 0),
            rope.get("beta_fast", 32.0), rope.get("beta_slow", 1.0))
    return f"{{{width}, {kind}, {', '.join(map(str, keys))}, {magnitude!r},\n     {{{lines}}}}},"


print("/* Made by tools/oracle/rope_numbers.py: what transformers 5.24.0 computes in binary32. llama3 is the plain kind:")
print(" * files hold its divisors. */")
print("/* clang-format off */")
print("static const struct {\n    int dim;\n    nib_rope_kind kind;\n"
      "    double base, factor, original, beta_fast, beta_slow, magnitude;\n    double freq[64]; /* [dim / 2] */\n"
      "} rope_numbers[] = {")
for case in CASES:
    print("    " + initializer(*case))
print("};")
