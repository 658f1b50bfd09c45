#!/usr/bin/env python3
"""What bench/peers and bench/fast-against-exact measured as tables, and the sections of docs/performance.md.

    table.py LOG [--write FILE]                                JSON Lines as bench/peers writes them
    table.py --perplexity LOG --hashes FILE [--write FILE]     JSON Lines as bench/fast-against-exact writes them
    table.py --machine                                         this machine, as one JSON object

A section lies between <!-- begin NAME --> and <!-- end NAME -->; the others stay as they are.
"""

import argparse
import json
import os
import platform
import subprocess
import sys

MODELS = {
    "q4_1": "SmolLM2 135M Q4_1",
    "q4_0": "SmolLM2 135M Q4_0",
    "q8_0": "SmolLM2 135M Q8_0",
    "f32": "SmolLM2 135M F32",
    "gemma": "Gemma 3 270M Q4_K_M",
}
TITLES = {
    "auto": "Each as it likes best on this machine",
    "avx2": "nib with `--cpu avx2`, llama.cpp built without AVX-512",
}
SECTIONS = ["auto", "avx2", "exact"]

HEAD = """# Performance: nib beside llama.cpp

Written by `bench/peers --write docs/performance.md`, `bench/peers --cpu avx2 --write docs/performance.md` and
`bench/fast-against-exact --write docs/performance.md`; each renews its own section.

**The work.** Prefill: one prompt, in passes of at most 512 tokens, with the logits of its last token. Decode: one
token at a time for every sequence, with the logits of every row. The tokens are fixed ids; nothing is sampled. tok/s
counts all sequences together.

**The rounds.** nib and llama.cpp run in turn, round after round, each time in a new process that maps the model, does
the work once without the clock and once with it. What is compared is the median over the rounds; behind the ratio
stand the smallest and the largest of the single rounds.

**llama.cpp** is driven by llama_decode, with its defaults but for what is said here: as many threads as nib for both
prompts and decoding, n_batch = n_ubatch = 512, a context as long as the work (one sequence, or the batch with a cache
of its own for each), windowed layers that keep their window only, model mapped. Its cache is binary16 like nib's.
Every work is done with flash attention and without it, and the faster of the two counts, round by round.

**The models.** Q4_1 and Q4_K_M are as `script/fetch-models` brings them. Q4_0, Q8_0 and F32 are made from the Q4_1
file by llama.cpp's own quantise call; the embedding, which is also the head, is Q8_0 in Q4_1, Q4_0 and Q8_0.

**GB/s and GFLOP/s** are the least that the work must read (every weight matrix, once a pass; every visible key and
value, once a pass and sequence) and compute (two operations for each weight and row, and attention), divided by nib's
time. "of the limit" is the time that this machine would need for that at least, by what was needed: reading at its
bandwidth, or computing at its rate of int8 products and binary32 multiply-adds, whichever is longer. `nib bench`
measures the limits in the same run; here stands their median. A limit is what was reached at the time: a model that
stays in the caches can be read faster.
"""


def fail(message):
    sys.exit("table.py: " + message)


def median(values):
    values = sorted(values)
    half = len(values) // 2
    return values[half] if len(values) % 2 else (values[half - 1] + values[half]) / 2


def first_line(command):
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()[0]
    except (OSError, subprocess.CalledProcessError, IndexError):
        return "unknown"


def machine():
    processor = "unknown"
    with open("/proc/cpuinfo", encoding="utf-8") as lines:
        for line in lines:
            if line.startswith("model name"):
                processor = line.split(":", 1)[1].strip()
                break
    caches = first_line(["sh", "-c", "lscpu | sed -n 's/^L3 cache: *//p'"])
    return {
        "processor": processor,
        "processors": len(os.sched_getaffinity(0)),
        "l3": caches,
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "kernel": platform.release(),
        "compiler": first_line(["cc", "--version"]),
    }


def read_log(path):
    with open(path, encoding="utf-8") as lines:
        rounds = [json.loads(line) for line in lines]
    info = [line for line in rounds if line["side"] == "info"]
    rounds = [line for line in rounds if line["side"] != "info"]
    if not info or not rounds:
        fail(f"{path}: no rounds, expected the lines that bench/peers writes")
    return info[0], rounds


def key_of(one):
    return one["what"], one["batch"], one["depth"], one["tokens"]


def work_name(key):
    what, batch, depth, tokens = key
    if what == "prefill":
        return f"prefill {tokens}"
    return f"decode, batch {batch}" + (f", after {depth}" if depth else "")


def rows_of(rounds):
    """One row for each model and work that both sides did."""
    rows = []
    for name in dict.fromkeys(line["name"] for line in rounds):
        sides = {}
        for line in rounds:
            if line["name"] == name:
                for one in line["measured"]["runs"]:
                    sides.setdefault(key_of(one), {}).setdefault(line["side"], {})[line["round"]] = one
        for key, found in sides.items():
            if len(found) == 2:
                rows.append(row_of(name, key, found["nib"], found["peer"]))
    if not rows:
        fail("no work that both sides did")
    return rows


def row_of(name, key, ours, theirs):
    singles = [ours[n]["tok_s"] / theirs[n]["tok_s"] for n in ours if n in theirs]
    ours, theirs = list(ours.values()), list(theirs.values())
    row = {field: median([one[field] for one in ours]) for field in ("tok_s", "gb_s", "gflop_s", "part_of_limit")}
    bounds = [one["bound"] for one in ours]
    row.update(
        model=MODELS.get(name, name),
        work=work_name(key),
        peer_tok_s=median([one["tok_s"] for one in theirs]),
        low=min(singles),
        high=max(singles),
        bound=max(set(bounds), key=bounds.count),
    )
    row["ratio"] = row["tok_s"] / row["peer_tok_s"]
    return row


def table(rows):
    lines = [
        "| model | work | nib tok/s | llama.cpp tok/s | ratio (rounds) | nib GB/s | nib GFLOP/s | of the limit |",
        "| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for row in rows:
        lines.append(
            f"| {row['model']} | {row['work']} | {row['tok_s']:.1f} | {row['peer_tok_s']:.1f} "
            f"| **{row['ratio']:.2f}** ({row['low']:.2f} to {row['high']:.2f}) | {row['gb_s']:.1f} "
            f"| {row['gflop_s']:.1f} | {100 * row['part_of_limit']:.0f} % of {row['bound']} |"
        )
    return "\n".join(lines)


def conditions(info, rounds):
    """The paragraph above the table."""
    ours = [line["measured"] for line in rounds if line["side"] == "nib"]
    limit = {name: median([one["limits"][name] for one in ours]) for name in ("read_gb_s", "f32_gflop_s", "int8_gop_s")}
    about, one = info["machine"], ours[0]
    cores = f"{about['processors']} processor" + ("s" if about["processors"] != 1 else "")
    return (
        f"{about['processor']}, {cores}, L3 cache {about['l3']}, {about['memory_bytes'] / 2**30:.0f} GiB, "
        f"Linux {about['kernel']}, {about['compiler']}.\n"
        f"nib {one['version']} ({info['commit']}), numeric contract {one['contract']}, instruction set {one['cpu']}, "
        f"compute {one['compute']}, cache type {one['cache_type']}, threads {one['threads']} (llama.cpp too).\n"
        f"llama-cpp-python {info['peer']['version']}: {info['peer']['system'].strip(' |')}.\n"
        f"Limits: reading {limit['read_gb_s']:.1f} GB/s, binary32 {limit['f32_gflop_s']:.0f} GFLOP/s, "
        f"int8 {limit['int8_gop_s']:.0f} GOP/s. "
        f"Rounds: {max(line['round'] for line in rounds)}."
    )


def least(rows):
    worst = min(rows, key=lambda row: row["ratio"])
    return f"Least ratio: {worst['ratio']:.2f} ({worst['model']}, {worst['work']})."


def perplexities(log, hashes):
    """Perplexity of each model and mode, and its difference from the first mode on the same tokens."""
    with open(log, encoding="utf-8") as lines:
        found = [json.loads(line) for line in lines]
    with open(hashes, encoding="utf-8") as lines:
        texts = [line.split(maxsplit=1) for line in lines]
    first = found[0]["measured"]
    out = [
        f"Perplexity in windows of {first['window']} tokens that know nothing of each other, each begun with the\n"
        "start token where the model has one. The errors are standard errors over the windows; that of the difference\n"
        "is of the same tokens' differences.",
        "",
        "| model | tokens | compute, cache | perplexity | against the first |",
        "| --- | ---: | --- | ---: | ---: |",
    ]
    for line in found:
        for i, mode in enumerate(line["measured"]["modes"]):
            change = f"{100 * mode['relative']:+.2f} ± {100 * mode['relative_error']:.2f} %" if i else ""
            out.append(
                f"| {line['model']} | {line['measured']['scored']} | {mode['mode'].replace(':', ', ')} "
                f"| {mode['perplexity']:.4f} ± {mode['error']:.2f} | {change} |"
            )
    out += ["", "The text, as one, and the SHA-256 of its files:", ""]
    out += [f"    {digest}  {name.strip()}" for digest, name in texts]
    return "\n".join(out)


def put_section(page, name, text):
    begin, end = f"<!-- begin {name} -->", f"<!-- end {name} -->"
    section = f"{begin}\n{text.strip()}\n{end}\n"
    if begin in page and end in page:
        before, rest = page.split(begin, 1)
        return before + section.rstrip("\n") + rest.split(end, 1)[1]
    # A new one goes before the first that follows it.
    for later in SECTIONS[SECTIONS.index(name) + 1 :] if name in SECTIONS else []:
        mark = f"<!-- begin {later} -->"
        if mark in page:
            before, rest = page.split(mark, 1)
            return before + section + "\n" + mark + rest
    return page.rstrip("\n") + "\n\n" + section


def write_section(path, name, text):
    page = ""
    if os.path.exists(path):
        with open(path, encoding="utf-8") as file:
            page = file.read()
    start = page.find("<!-- begin ")
    page = HEAD + ("\n" + page[start:] if start >= 0 else "")
    page = put_section(page, name, text)
    with open(path + ".part", "w", encoding="utf-8") as file:
        file.write(page)
    os.replace(path + ".part", path)


def main():
    parser = argparse.ArgumentParser(prog="table.py", description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("log", nargs="?")
    parser.add_argument("--write", metavar="FILE")
    parser.add_argument("--perplexity", metavar="LOG")
    parser.add_argument("--hashes", metavar="FILE")
    parser.add_argument("--machine", action="store_true")
    options = parser.parse_args()
    if options.machine:
        print(json.dumps(machine()))
        return
    if options.perplexity and options.hashes:
        text = perplexities(options.perplexity, options.hashes)
        print(text)
        if options.write:
            write_section(options.write, "exact", f"## What compute=fast changes\n\n{text}")
        return
    if not options.log:
        parser.error("expected a log, --perplexity with --hashes, or --machine")
    info, rounds = read_log(options.log)
    rows = rows_of(rounds)
    text = f"{conditions(info, rounds)}\n\n{table(rows)}\n\n{least(rows)}"
    print(text)
    if options.write:
        cpu = rounds[0]["asked_cpu"]
        write_section(options.write, cpu, f"## {TITLES.get(cpu, cpu)}\n\n{text}")


if __name__ == "__main__":
    main()
