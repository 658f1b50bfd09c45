"""Runs a transformers model greedily and keeps what a golden file needs of every step."""

import torch

TOP = 5


def generate(model, prompt, n_new, **settings):
    """generate() of transformers: the new ids, the raw logits and the processed scores [n_new, V], all on float32."""
    out = model.generate(torch.tensor([prompt]), attention_mask=torch.ones(1, len(prompt), dtype=torch.long),
                         do_sample=False, max_new_tokens=n_new, output_logits=True, output_scores=True,
                         return_dict_in_generate=True, **settings)
    ids = out.sequences[0, len(prompt):].tolist()
    return ids, torch.cat(out.logits), torch.cat(out.scores)


def whole(model, ids, n_last):
    """Logits of the last n_last positions, all tokens in one pass without a cache."""
    with torch.no_grad():
        return model(torch.tensor([ids]), use_cache=False, logits_to_keep=n_last).logits[0]


def describe(ids, logits, scores):
    """Log-probabilities (float64), margins between the best and the second score, and the best few, step by step."""
    chosen = torch.tensor(ids)[:, None]
    logprobs = torch.log_softmax(logits.double(), dim=-1).gather(1, chosen)[:, 0]
    best = scores.double().topk(2).values
    top = logits.topk(TOP)
    return {
        "ids": ids,
        "logprobs": logprobs.tolist(),
        "margins": (best[:, 0] - best[:, 1]).tolist(),
        "top_ids": top.indices.tolist(),
        "top_logits": top.values.tolist(),
    }


def run(model, prompt, n_new, **settings):
    """One case. `cache_noise`: how far the oracle's own cached and uncached logits lie apart, a floor of any bound."""
    ids, logits, scores = generate(model, prompt, n_new, **settings)
    again = whole(model, prompt + ids[:-1], len(ids))
    case = describe(ids, logits, scores)
    case["cache_noise"] = (again.double().log_softmax(-1) - logits.double().log_softmax(-1)).abs().max().item()
    case["max_logit"] = logits.abs().max().item()
    return case
