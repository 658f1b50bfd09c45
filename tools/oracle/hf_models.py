"""Turns a GGUF file into the transformers model it describes: float32, eager attention, weights of gguf_weights.py."""

import numpy as np
import torch
from transformers import (Gemma3ForCausalLM, Gemma3TextConfig, GPT2Config, GPT2LMHeadModel, LlamaConfig,
                          LlamaForCausalLM, Qwen2Config, Qwen2ForCausalLM, Qwen3Config, Qwen3ForCausalLM)

LAYER_NAMES = {
    "attn_q.weight": "self_attn.q_proj.weight",
    "attn_k.weight": "self_attn.k_proj.weight",
    "attn_v.weight": "self_attn.v_proj.weight",
    "attn_output.weight": "self_attn.o_proj.weight",
    "attn_q.bias": "self_attn.q_proj.bias",
    "attn_k.bias": "self_attn.k_proj.bias",
    "attn_v.bias": "self_attn.v_proj.bias",
    "attn_output.bias": "self_attn.o_proj.bias",
    "ffn_gate.weight": "mlp.gate_proj.weight",
    "ffn_up.weight": "mlp.up_proj.weight",
    "ffn_down.weight": "mlp.down_proj.weight",
    "attn_norm.weight": "input_layernorm.weight",
}
LLAMA_NAMES = LAYER_NAMES | {"ffn_norm.weight": "post_attention_layernorm.weight"}
GEMMA3_NAMES = LAYER_NAMES | {
    "attn_q_norm.weight": "self_attn.q_norm.weight",
    "attn_k_norm.weight": "self_attn.k_norm.weight",
    "post_attention_norm.weight": "post_attention_layernorm.weight",
    "ffn_norm.weight": "pre_feedforward_layernorm.weight",
    "post_ffw_norm.weight": "post_feedforward_layernorm.weight",
}
QWEN3_NAMES = LLAMA_NAMES | {
    "attn_q_norm.weight": "self_attn.q_norm.weight",
    "attn_k_norm.weight": "self_attn.k_norm.weight",
}
GPT2_NAMES = {
    f"{ours}.{part}": f"{theirs}.{part}"
    for ours, theirs in {"attn_norm": "ln_1", "attn_qkv": "attn.c_attn", "attn_output": "attn.c_proj",
                         "ffn_norm": "ln_2", "ffn_up": "mlp.c_fc", "ffn_down": "mlp.c_proj"}.items()
    for part in ("weight", "bias")
}


def shortest(value):
    """The shortest decimal of a float32 as a double: 1e-5 instead of 9.999999747378752e-06."""
    return float(str(np.float32(value)))


def common(file):
    heads = file.get("{arch}.attention.head_count")
    width = file.get("{arch}.embedding_length")
    return {
        "vocab_size": file.tensors["token_embd.weight"].data.shape[0],
        "hidden_size": width,
        "intermediate_size": file.get("{arch}.feed_forward_length"),
        "num_hidden_layers": file.get("{arch}.block_count"),
        "num_attention_heads": heads,
        "num_key_value_heads": file.get("{arch}.attention.head_count_kv", heads),
        "head_dim": file.get("{arch}.attention.key_length", width // heads),
        "max_position_embeddings": file.get("{arch}.context_length"),
        "rms_norm_eps": shortest(file.get("{arch}.attention.layer_norm_rms_epsilon")),
        "tie_word_embeddings": "output.weight" not in file.tensors,
        "bos_token_id": None,
        "eos_token_id": None,
        "pad_token_id": None,
        "attn_implementation": "eager",
    }


def rope_parameters(file, theta):
    """The frequencies' scaling by the keys; llama3's lies in a tensor: see load."""
    rope = {"rope_type": "default", "rope_theta": theta}
    kind = file.get("{arch}.rope.scaling.type")
    if kind in ("linear", "yarn"):
        rope |= {"rope_type": kind, "factor": shortest(file.get("{arch}.rope.scaling.factor"))}
    if kind == "yarn":
        rope["original_max_position_embeddings"] = file.get("{arch}.rope.scaling.original_context_length")
        for key in ("beta_fast", "beta_slow"):
            rope[key] = file.get(f"{{arch}}.rope.scaling.yarn_{key}", {"beta_fast": 32.0, "beta_slow": 1.0}[key])
    return rope


def unpermute(rows, heads):
    """llama's q and k rows from GGUF's order (pairs side by side) to transformers' (pairs half a head apart)."""
    return rows.reshape(heads, -1, 2, *rows.shape[1:]).swapaxes(1, 2).reshape(rows.shape)


def llama_config(file):
    theta = shortest(file.get("{arch}.rope.freq_base", 10000.0))
    bias = "blk.0.attn_q.bias" in file.tensors
    return LlamaConfig(**common(file), attention_bias=bias, rope_parameters=rope_parameters(file, theta))


def llama_weight(file, config, name):
    weight = file.weight(name)
    if ".attn_q." in name:
        return unpermute(weight, config.num_attention_heads)
    if ".attn_k." in name:
        return unpermute(weight, config.num_key_value_heads)
    return weight


def gemma3_config(file):
    theta = shortest(file.get("{arch}.rope.freq_base", 1e6))
    return Gemma3TextConfig(
        **common(file),
        sliding_window=file.get("{arch}.attention.sliding_window"),
        sliding_window_pattern=6,
        query_pre_attn_scalar=file.get("{arch}.attention.key_length"),
        rope_parameters={
            "full_attention": rope_parameters(file, theta),
            "sliding_attention": {"rope_type": "default", "rope_theta": 1e4},
        },
    )


def gemma3_weight(file, _config, name):
    """GGUF stores the factor 1 + w of a norm, transformers w; the difference is exact in both directions."""
    weight = file.weight(name)
    if "norm" not in name:
        return weight
    less_one = weight - np.float32(1)
    assert np.array_equal(np.float32(1) + less_one, weight), f"{name}: 1 + (g - 1) is not g"
    return less_one


def qwen_config(config_class):
    def make(file):
        theta = shortest(file.get("{arch}.rope.freq_base", 10000.0))
        return config_class(**common(file), rope_parameters=rope_parameters(file, theta))

    return make


def plain_weight(file, _config, name):
    return file.weight(name)


def gpt2_config(file):
    return GPT2Config(
        vocab_size=file.tensors["token_embd.weight"].data.shape[0],
        n_positions=file.get("{arch}.context_length"),
        n_embd=file.get("{arch}.embedding_length"),
        n_layer=file.get("{arch}.block_count"),
        n_head=file.get("{arch}.attention.head_count"),
        n_inner=file.get("{arch}.feed_forward_length"),
        layer_norm_epsilon=shortest(file.get("{arch}.attention.layer_norm_epsilon")),
        tie_word_embeddings="output.weight" not in file.tensors,
        activation_function="gelu_new",
        bos_token_id=None,
        eos_token_id=None,
        attn_implementation="eager",
    )


def is_conv1d(name):
    """Whether transformers keeps this matrix of a GPT-2, by its name there, with rows and columns exchanged."""
    return ".c_" in name and name.endswith("weight")


def gpt2_weight(file, _config, name):
    weight = file.weight(name)
    return weight.T.copy() if is_conv1d(hf_name(name, GPT2_NAMES)) else weight


ARCHITECTURES = {
    "llama": (llama_config, llama_weight, LlamaForCausalLM, LLAMA_NAMES),
    "gemma3": (gemma3_config, gemma3_weight, Gemma3ForCausalLM, GEMMA3_NAMES),
    "qwen2": (qwen_config(Qwen2Config), plain_weight, Qwen2ForCausalLM, LLAMA_NAMES),
    "qwen3": (qwen_config(Qwen3Config), plain_weight, Qwen3ForCausalLM, QWEN3_NAMES),
    "gpt2": (gpt2_config, gpt2_weight, GPT2LMHeadModel, GPT2_NAMES),
}


OUTER_NAMES = {
    "token_embd.weight": "model.embed_tokens.weight",
    "output_norm.weight": "model.norm.weight",
    "output.weight": "lm_head.weight",
}
GPT2_OUTER_NAMES = {
    "token_embd.weight": "transformer.wte.weight",
    "position_embd.weight": "transformer.wpe.weight",
    "output_norm.weight": "transformer.ln_f.weight",
    "output_norm.bias": "transformer.ln_f.bias",
    "output.weight": "lm_head.weight",
}


def outer_names(layer_names):
    """GGUF's names outside the layers to transformers'."""
    return GPT2_OUTER_NAMES if layer_names is GPT2_NAMES else OUTER_NAMES


def hf_name(name, layer_names):
    outer = outer_names(layer_names)
    if name in outer:
        return outer[name]
    _, layer, rest = name.split(".", 2)
    return f"{'transformer.h' if layer_names is GPT2_NAMES else 'model.layers'}.{layer}.{layer_names[rest]}"


def load(file):
    """The model of an open gguf_weights.File. Every tensor must find its place and every place its tensor."""
    make_config, get_weight, model_class, layer_names = ARCHITECTURES[file.get("general.architecture")]
    config = make_config(file)
    model = model_class(config).float().eval()
    names = [name for name in file.tensors if name != "rope_freqs.weight"]
    state = {hf_name(name, layer_names): torch.from_numpy(get_weight(file, config, name)) for name in names}
    if "rope_freqs.weight" in file.tensors:
        model.model.rotary_emb.inv_freq /= torch.from_numpy(file.weight("rope_freqs.weight"))
    missing, unexpected = model.load_state_dict(state, strict=False)
    if config.tie_word_embeddings:
        assert model.lm_head.weight is model.get_input_embeddings().weight
        missing = [name for name in missing if name != "lm_head.weight"]
    assert not missing and not unexpected, (missing, unexpected)
    return model
