"""Runs a transformers model greedily and keeps what a golden file needs of every step."""

import torch

TOP = 5


def generate(model, prompt, limit, penalty, end):
    """generate() of transformers: the new ids, the raw logits and the processed scores [n, V]."""
    extra = {"eos_token_id": end, "pad_token_id": 0} if end else {}
    if penalty != 1:
        extra["repetition_penalty"] = penalty
    out = model.generate(torch.tensor([prompt]), attention_mask=torch.ones(1, len(prompt), dtype=torch.long),
                         do_sample=False, max_new_tokens=limit, output_logits=True, output_scores=True,
                         return_dict_in_generate=True, **extra)
    return out.sequences[0, len(prompt) :].tolist(), torch.cat(out.logits), torch.cat(out.scores)


def whole(model, ids, n_last):
    """Logits of the last n_last positions, all tokens in one pass without a cache."""
    with torch.no_grad():
        return model(torch.tensor([ids]), use_cache=False, logits_to_keep=n_last).logits[0]


def distance(a, b):
    """The largest difference of two sets of logits, as log-probabilities."""
    return (a.double().log_softmax(-1) - b.double().log_softmax(-1)).abs().max().item()


def run(model, name, prompt, limit, penalty=1.0, end=()):
    """One case. `cache_noise`: how far the oracle's own cached and uncached answers lie apart, a floor of any bound."""
    end = list(end)
    ids, logits, scores = generate(model, prompt, limit, penalty, end)
    best, top = scores.double().topk(2).values, logits.topk(TOP)
    chosen = torch.tensor(ids)[:, None]
    case = {
        "name": name,
        "prompt": prompt,
        "penalty": penalty,
        "end": end,
        "limit": limit,
        "ids": ids,
        "logprobs": logits.double().log_softmax(-1).gather(1, chosen)[:, 0].tolist(),
        "processed": scores.double().log_softmax(-1).gather(1, chosen)[:, 0].tolist(),
        "margins": (best[:, 0] - best[:, 1]).tolist(),
        "top_ids": top.indices.tolist(),
        "top_logits": top.values.tolist(),
        "max_logit": logits.abs().max().item(),
        "cache_noise": distance(logits, whole(model, prompt + ids[:-1], len(ids))),
    }
    print(f"{name}: {len(prompt)} tokens and {len(ids)} new ones, smallest margin {min(case['margins']):.3g}, "
          f"cached against uncached {case['cache_noise']:.2g}")
    return case
