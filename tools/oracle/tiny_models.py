"""The tiny models: their sizes, their random weights and how they are written as GGUF."""

from dataclasses import dataclass, field

import gguf
import gguf_weights
import hf_models
import numpy as np
import torch
from gguf import GGMLQuantizationType as Type
from transformers import Gemma3TextConfig, GPT2Config, LlamaConfig, Qwen2Config, Qwen3Config

CONFIG_CLASSES = {"llama": LlamaConfig, "gemma3": Gemma3TextConfig, "qwen2": Qwen2Config, "qwen3": Qwen3Config,
                  "gpt2": GPT2Config}
COMMON = {"bos_token_id": None, "eos_token_id": None, "pad_token_id": None, "attn_implementation": "eager"}
K_QUANTS = (Type.Q4_K, Type.Q5_K, Type.Q6_K)  # gguf can read but not make them: random codes instead


@dataclass
class Spec:
    name: str
    architecture: str
    seed: int
    config: dict
    types: list  # of the matrices, in turn
    text: int = 40  # tokens whose logits are kept
    prompt: int = 12  # tokens of it that are continued
    vocabulary_key: bool = False  # say tokenizer.ggml.model = none instead of nothing
    theta: dict = field(default_factory=dict)


def llama(name, seed, types, V, D, F, L, H, K, E, context, tied, theta=10000.0, scaling=None, **rest):
    config = {"vocab_size": V, "hidden_size": D, "intermediate_size": F, "num_hidden_layers": L,
              "num_attention_heads": H, "num_key_value_heads": K, "head_dim": E, "max_position_embeddings": context,
              "rms_norm_eps": 1e-5, "tie_word_embeddings": tied,
              "rope_parameters": {"rope_type": "default", "rope_theta": theta} | (scaling or {})}
    return Spec(name, "llama", seed, config, types, **rest)


def gemma3(name, seed, types, V, D, F, L, H, K, E, context, window, scaling=None, **rest):
    rope = {"full_attention": {"rope_type": "default", "rope_theta": 1e6} | (scaling or {}),
            "sliding_attention": {"rope_type": "default", "rope_theta": 1e4}}
    config = {"vocab_size": V, "hidden_size": D, "intermediate_size": F, "num_hidden_layers": L,
              "num_attention_heads": H, "num_key_value_heads": K, "head_dim": E, "max_position_embeddings": context,
              "rms_norm_eps": 1e-6, "tie_word_embeddings": True, "sliding_window": window,
              "query_pre_attn_scalar": E, "rope_parameters": rope}
    return Spec(name, "gemma3", seed, config, types, **rest)


def qwen(name, architecture, seed, types, V, D, F, L, H, K, E, context, tied, theta=1e6, **rest):
    spec = llama(name, seed, types, V, D, F, L, H, K, E, context, tied, theta, **rest)
    spec.architecture = architecture
    spec.config["rms_norm_eps"] = 1e-6
    return spec


def gpt2(name, seed, types, V, D, L, H, context, tied=True, **rest):
    config = {"vocab_size": V, "n_embd": D, "n_layer": L, "n_head": H, "n_positions": context,
              "layer_norm_epsilon": 1e-5, "activation_function": "gelu_new", "tie_word_embeddings": tied}
    return Spec(name, "gpt2", seed, config, types, **rest)


def linear(factor):
    return {"rope_type": "linear", "factor": factor}


def llama3(factor, original):
    return {"rope_type": "llama3", "factor": factor, "original_max_position_embeddings": original,
            "low_freq_factor": 1.0, "high_freq_factor": 4.0}


def yarn(factor, original, **rest):
    return {"rope_type": "yarn", "factor": factor, "original_max_position_embeddings": original} | rest


# Texts of 150 cross the 64 keys that attention takes as one group; windows lie below, at and above that.
SPECS = [
    llama("llama-tied-f32", 1, [Type.F32], V=128, D=32, F=64, L=2, H=4, K=2, E=8, context=256, tied=True, text=150),
    llama("llama-untied-f16", 2, [Type.F16], V=200, D=48, F=80, L=2, H=3, K=1, E=32, context=128, tied=False,
          theta=500000.0, vocabulary_key=True),
    llama("llama-bf16", 3, [Type.BF16], V=200, D=40, F=56, L=2, H=5, K=5, E=8, context=128, tied=True),
    llama("llama-quants", 4, [Type.Q8_0, Type.Q4_0, Type.Q4_1, Type.Q5_0, Type.Q5_1], V=224, D=64, F=96, L=3, H=4, K=2,
          E=16, context=128, tied=False, vocabulary_key=True),
    llama("llama-k-quants", 5, [Type.Q6_K, Type.Q4_K, Type.Q5_K], V=96, D=256, F=256, L=1, H=4, K=1, E=64, context=128,
          tied=False),
    gemma3("gemma3-window8-f16", 16, [Type.F16], V=112, D=24, F=40, L=8, H=2, K=1, E=16, context=256, window=8,
           text=150, prompt=30),
    gemma3("gemma3-window64-q8_0", 7, [Type.Q8_0], V=112, D=32, F=64, L=7, H=2, K=2, E=32, context=256, window=64,
           text=150, prompt=130, vocabulary_key=True),
    gemma3("gemma3-window100-bf16", 8, [Type.BF16], V=96, D=32, F=32, L=6, H=1, K=1, E=16, context=256, window=100,
           text=150, prompt=120),
    qwen("qwen2-tied-f16", "qwen2", 21, [Type.F16], V=160, D=40, F=56, L=2, H=5, K=1, E=8, context=256, tied=True,
         text=150, vocabulary_key=True),
    qwen("qwen2-untied-q8_0", "qwen2", 32, [Type.Q8_0], V=160, D=64, F=96, L=2, H=4, K=2, E=16, context=128,
         tied=False, theta=10000.0, vocabulary_key=True),
    qwen("qwen3-tied-bf16", "qwen3", 33, [Type.BF16], V=160, D=48, F=64, L=3, H=3, K=1, E=32, context=256, tied=True,
         text=150, vocabulary_key=True),
    qwen("qwen3-untied-q4_0", "qwen3", 24, [Type.Q4_0], V=160, D=32, F=64, L=2, H=4, K=2, E=16, context=128,
         tied=False, vocabulary_key=True),
    llama("llama-linear-f16", 41, [Type.F16], V=160, D=32, F=48, L=2, H=2, K=1, E=16, context=256, tied=True,
          scaling=linear(4.0), text=150, vocabulary_key=True),
    llama("llama-llama3-f16", 42, [Type.F16], V=160, D=32, F=48, L=2, H=2, K=2, E=32, context=256, tied=True,
          theta=500.0, scaling=llama3(8.0, 64), text=150, vocabulary_key=True),
    llama("llama-yarn-f16", 43, [Type.F16], V=160, D=32, F=48, L=2, H=2, K=1, E=32, context=256, tied=False,
          theta=500.0, scaling=yarn(4.0, 64), text=150, vocabulary_key=True),
    qwen("qwen2-yarn-f16", "qwen2", 44, [Type.F16], V=160, D=32, F=48, L=2, H=2, K=1, E=16, context=512, tied=True,
         theta=1000.0, scaling=yarn(8.0, 64, beta_fast=16.0, beta_slow=2.0), text=150, vocabulary_key=True),
    gemma3("gemma3-linear-f16", 45, [Type.F16], V=96, D=32, F=32, L=6, H=2, K=1, E=16, context=256, window=20,
           scaling=linear(8.0), text=150, prompt=60, vocabulary_key=True),
    gpt2("gpt2-f32", 35, [Type.F32], V=160, D=40, L=2, H=5, context=160, text=150, vocabulary_key=True),
    gpt2("gpt2-quants", 46, [Type.Q8_0, Type.Q4_1, Type.F16], V=160, D=64, L=2, H=4, context=64, vocabulary_key=True),
]


def config_of(spec):
    return CONFIG_CLASSES[spec.architecture](**spec.config, **COMMON)


def weight_scale(spec, name, shape):
    """Large enough that attention prefers some keys and each layer matters: with the usual 0.02 errors would hide."""
    if "embed_tokens" in name:  # gemma3 multiplies them by sqrt(D)
        return 0.4 / shape[-1] ** 0.5 if spec.architecture == "gemma3" else 0.5
    if ".wte." in name or ".wpe." in name:
        return 0.5
    gains = {"q_proj": 2.0, "k_proj": 2.0, "down_proj": 2.0, "o_proj": 2.0, "c_attn": 2.0, "c_proj": 2.0}
    gain = gains.get(name.split(".")[-2], 1.0)
    return gain / shape[-1] ** 0.5


def random_rows(raw_type, shape):
    """A matrix of random codes in blocks of 256, with scales that give weights of the usual size."""
    _, block_bytes = gguf.GGML_QUANT_SIZES[raw_type]
    raw = torch.randint(0, 256, (shape[0] * shape[1] // 256, block_bytes), dtype=torch.uint8).numpy()
    at = {Type.Q4_K: (0, 2), Type.Q5_K: (0, 2), Type.Q6_K: (208,)}[raw_type]
    size = {Type.Q4_K: (2.5e-4, 2e-3), Type.Q5_K: (1.2e-4, 2e-3), Type.Q6_K: (5e-5,)}[raw_type]
    for byte, scale in zip(at, size):
        values = (torch.rand(len(raw), 1) + 0.5).numpy() * scale
        raw[:, byte : byte + 2] = values.astype(np.float16).view(np.uint8)
    return raw.reshape(shape[0], -1)


def stored(spec, raw_type, name, shape):
    """A random matrix as the file holds it."""
    if raw_type in K_QUANTS:
        return random_rows(raw_type, shape)
    scale = weight_scale(spec, name, shape)
    values = (torch.randn(shape) * scale).numpy()
    return values if raw_type == Type.F32 else gguf.quants.quantize(values, raw_type)


def random_norm(spec, name, size):
    """Factors of 0.5 to 1.5, biases of -0.5 to 0.5; gemma3 keeps the factor less one. Multiples of 1/1024, so that both
    are exact. gemma3's last one is larger, because its small embeddings are the head too and would leave all logits
    alike."""
    factors = torch.randint(512, 1536, (size,)).float() / 1024
    if name.endswith(".bias"):
        return factors - 1
    if spec.architecture != "gemma3":
        return factors
    return factors * (8 if name == "model.norm.weight" else 1) - 1


def build(spec):
    """The model, with `spec.stored`: what each matrix looks like in the file."""
    config = config_of(spec)
    model = hf_models.ARCHITECTURES[spec.architecture][2](config).float().eval()
    spec.stored = {}
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.dim() == 1:
                parameter.copy_(random_norm(spec, name, len(parameter)))
                continue
            raw_type = spec.types[len(spec.stored) % len(spec.types)]
            turned = spec.architecture == "gpt2" and hf_models.is_conv1d(name)
            data = stored(spec, raw_type, name, tuple(parameter.T.shape if turned else parameter.shape))
            spec.stored[name] = (data, raw_type)
            values = torch.from_numpy(gguf_weights.dequantise(data, raw_type))
            parameter.copy_(values.T if turned else values)
    return model


def permute(rows, heads):
    """llama's q and k rows from transformers' order (pairs half a head apart) to GGUF's (pairs side by side)."""
    return rows.reshape(heads, 2, -1, *rows.shape[1:]).swapaxes(1, 2).reshape(rows.shape)


def gguf_names(spec):
    """transformers' name to GGUF's, for all layers."""
    layer_names = hf_models.ARCHITECTURES[spec.architecture][3]
    layers = spec.config["n_layer" if spec.architecture == "gpt2" else "num_hidden_layers"]
    names = list(hf_models.outer_names(layer_names))
    names += [f"blk.{i}.{name}" for i in range(layers) for name in layer_names]
    return {hf_models.hf_name(name, layer_names): name for name in names}


def add_sizes(writer, spec):
    config = spec.config
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_head_count(config["num_attention_heads"])
    writer.add_head_count_kv(config["num_key_value_heads"])
    writer.add_key_length(config["head_dim"])
    writer.add_value_length(config["head_dim"])
    writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
    rope = config["rope_parameters"]
    rope = rope.get("full_attention", rope)
    writer.add_rope_freq_base(rope["rope_theta"])
    if rope["rope_type"] in ("linear", "yarn"):
        writer.add_rope_scaling_type(gguf.RopeScalingType(rope["rope_type"]))
        writer.add_rope_scaling_factor(rope["factor"])
    if rope["rope_type"] == "yarn":
        writer.add_rope_scaling_orig_ctx_len(rope["original_max_position_embeddings"])
    if "beta_fast" in rope:
        writer.add_rope_scaling_yarn_beta_fast(rope["beta_fast"])
        writer.add_rope_scaling_yarn_beta_slow(rope["beta_slow"])
    if spec.architecture == "llama":
        writer.add_rope_dimension_count(config["head_dim"])
    elif spec.architecture == "gemma3":
        writer.add_sliding_window(config["sliding_window"])


def add_gpt2_sizes(writer, spec):
    config = spec.config
    writer.add_context_length(config["n_positions"])
    writer.add_embedding_length(config["n_embd"])
    writer.add_block_count(config["n_layer"])
    writer.add_feed_forward_length(4 * config["n_embd"])
    writer.add_head_count(config["n_head"])
    writer.add_layer_norm_eps(config["layer_norm_epsilon"])


def add_keys(writer, spec):
    writer.add_name(spec.name)
    writer.add_vocab_size(spec.config["vocab_size"])
    (add_gpt2_sizes if spec.architecture == "gpt2" else add_sizes)(writer, spec)
    if spec.vocabulary_key:
        writer.add_tokenizer_model("none")


def llama3_divisors(rope, width):
    """What llama3's scaling divides each of the width / 2 frequencies by, as files hold it."""
    divisors = []
    low = rope["original_max_position_embeddings"] / rope["low_freq_factor"]
    high = rope["original_max_position_embeddings"] / rope["high_freq_factor"]
    for pair in range(width // 2):
        length = 2 * np.pi * rope["rope_theta"] ** (2 * pair / width)  # of the wave, in tokens
        kept = (rope["original_max_position_embeddings"] / length - rope["low_freq_factor"]) / (
            rope["high_freq_factor"] - rope["low_freq_factor"])
        blend = 1 / ((1 - kept) / rope["factor"] + kept)
        divisors.append(1.0 if length < high else rope["factor"] if length > low else blend)
    return np.array(divisors, dtype=np.float32)


def tensor_of(spec, name, parameter):
    """Bytes and type of one tensor in the file."""
    if name not in spec.stored:
        values = parameter.numpy()
        return (values + np.float32(1) if spec.architecture == "gemma3" else values), Type.F32
    data, raw_type = spec.stored[name]
    if spec.architecture == "llama" and ("q_proj" in name or "k_proj" in name):
        data = permute(data, spec.config["num_attention_heads" if "q_proj" in name else "num_key_value_heads"])
    return data, raw_type


def write(path, spec, model, add_tokenizer=None):
    writer = gguf.GGUFWriter(path, spec.architecture)
    add_keys(writer, spec)
    if add_tokenizer:
        add_tokenizer(writer)
    names = gguf_names(spec)
    rope = spec.config.get("rope_parameters", {})
    if rope.get("rope_type") == "llama3":
        writer.add_tensor("rope_freqs.weight", llama3_divisors(rope, spec.config["head_dim"]))
    for name, parameter in model.named_parameters():
        data, raw_type = tensor_of(spec, name, parameter.detach())
        writer.add_tensor(names[name], np.ascontiguousarray(data), raw_dtype=raw_type)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
