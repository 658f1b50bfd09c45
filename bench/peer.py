#!/usr/bin/env python3
"""Drives llama.cpp through the low-level interface of llama-cpp-python; bench/peers calls it.

    peer.py info                        what was built, as one JSON object
    peer.py make SOURCE TARGET TYPE     another type of a model: F32, Q4_0 or Q8_0, by llama.cpp's own quantise call
    peer.py measure -m MODEL [flags]    one timed run of each kind, as the JSON object that `nib bench --json` writes

What is timed is llama_decode and the wait for its logits; batches are filled beforehand, nothing is sampled. The same
work is done once untimed before. Two contexts: one for a single sequence, one for the batch, so that neither carries
the other's cache. Flash attention is faster for some work and slower for other: unless told, both are tried and the
faster counts.
"""

import argparse
import ctypes
import json
import os
import sys
import time

try:
    import llama_cpp
except ImportError:
    sys.exit("peer.py: this Python has no llama_cpp; bench/peers installs one")

# The reference must live as long as the library may log.
SILENT = llama_cpp.llama_log_callback(lambda level, text, user: None)

# As llama_flash_attn_type numbers them.
FLASH = {"auto": [-1], "off": [0], "on": [1], "best": [1, 0]}


def fail(message):
    sys.exit("peer.py: " + message)


def token_ids(n, first, vocabulary):
    """The ids that nib bench feeds: no text, the same on both sides."""
    return [(7919 * (first + i) + 1) % vocabulary for i in range(n)]


class Batch:
    """A llama_batch of rows (id, position, sequence, wants logits)."""

    def __init__(self, rows):
        self.n = len(rows)
        self.batch = llama_cpp.llama_batch_init(self.n, 0, 1)
        self.batch.n_tokens = self.n
        self.wanted = [i for i, row in enumerate(rows) if row[3]]
        for i, (token, position, sequence, wants) in enumerate(rows):
            self.batch.token[i] = token
            self.batch.pos[i] = position
            self.batch.n_seq_id[i] = 1
            self.batch.seq_id[i][0] = sequence
            self.batch.logits[i] = wants

    def run(self, context):
        code = llama_cpp.llama_decode(context, self.batch)
        if code != 0:
            fail(f"llama_decode answered {code} for {self.n} rows")
        llama_cpp.llama_synchronize(context)
        for i in self.wanted:
            if not llama_cpp.llama_get_logits_ith(context, i):
                fail(f"no logits for row {i}")

    def free(self):
        llama_cpp.llama_batch_free(self.batch)


def prefill_batches(n, chunk, sequence, vocabulary, wants):
    """n tokens of one sequence in chunks; logits of the last token only, or none."""
    ids = token_ids(n, 0, vocabulary)
    rows = [(ids[i], i, sequence, wants and i == n - 1) for i in range(n)]
    return [Batch(rows[i : i + chunk]) for i in range(0, n, chunk)]


def decode_batches(n, depth, batch, vocabulary):
    """n steps of one token for each of the sequences, logits for every row."""
    steps = []
    for step in range(n):
        rows = [(token_ids(1, depth + step + b, vocabulary)[0], depth + step, b, True) for b in range(batch)]
        steps.append(Batch(rows))
    return steps


def new_context(model, options, length, sequences, flash):
    params = llama_cpp.llama_context_default_params()
    params.n_ctx = length * sequences
    params.n_batch = params.n_ubatch = options.chunk
    params.n_seq_max = sequences
    params.n_threads = params.n_threads_batch = options.threads
    params.kv_unified = options.unified
    params.swa_full = options.full_window
    params.flash_attn_type = flash
    params.no_perf = True
    context = llama_cpp.llama_init_from_model(model, params)
    if not context:
        fail(f"no context of {params.n_ctx} tokens")
    return context


def timed(context, batches):
    begin = time.perf_counter()
    for batch in batches:
        batch.run(context)
    return time.perf_counter() - begin


def forget(context, sequences, position):
    memory = llama_cpp.llama_get_memory(context)
    for sequence in range(sequences):
        if not llama_cpp.llama_memory_seq_rm(memory, sequence, position, -1):
            fail(f"sequence {sequence} cannot be cut to {position} tokens")


def measure_prefill(context, options, vocabulary):
    batches = prefill_batches(options.prefill, options.chunk, 0, vocabulary, True)
    seconds = []
    for _ in range(options.repeat + 1):
        forget(context, 1, 0)
        seconds.append(timed(context, batches))
    for batch in batches:
        batch.free()
    return run("prefill", 1, 0, options.prefill, seconds[1:])


def measure_decode(context, options, vocabulary, depth, sequences):
    forget(context, sequences, 0)
    for sequence in range(sequences):
        for batch in prefill_batches(depth, options.chunk, sequence, vocabulary, False):
            batch.run(context)
            batch.free()
    steps = decode_batches(options.tokens, depth, sequences, vocabulary)
    seconds = []
    for _ in range(options.repeat + 1):
        forget(context, sequences, depth)
        seconds.append(timed(context, steps))
    for batch in steps:
        batch.free()
    return run("decode", sequences, depth, options.tokens, seconds[1:])


def run(what, batch, depth, tokens, seconds):
    median = sorted(seconds)[len(seconds) // 2]
    return {
        "what": what,
        "batch": batch,
        "depth": depth,
        "tokens": tokens,
        "seconds": seconds,
        "tok_s": batch * tokens / median,
    }


def peak_bytes():
    with open("/proc/self/status", encoding="ascii") as status:
        for line in status:
            if line.startswith("VmHWM:"):
                return 1024 * int(line.split()[1])
    return None


def open_model(path):
    llama_cpp.llama_backend_init()
    params = llama_cpp.llama_model_default_params()
    params.load_mode = llama_cpp.LLAMA_LOAD_MODE_MMAP
    model = llama_cpp.llama_model_load_from_file(os.fsencode(path), params)
    if not model:
        fail(f"{path}: llama.cpp does not open it")
    return model


def measure_all(model, options, vocabulary, flash):
    """Every kind of work, with flash attention or without."""
    length = max(options.prefill, options.depth + options.tokens)
    single = new_context(model, options, length, 1, flash)
    runs = [
        measure_prefill(single, options, vocabulary),
        measure_decode(single, options, vocabulary, 0, 1),
        measure_decode(single, options, vocabulary, options.depth, 1),
    ]
    llama_cpp.llama_free(single)
    many = new_context(model, options, options.tokens, options.batch, flash)
    runs.append(measure_decode(many, options, vocabulary, 0, options.batch))
    llama_cpp.llama_free(many)
    for one in runs:
        one["flash"] = flash
    return runs


def measure(options):
    begin = time.perf_counter()
    model = open_model(options.model)
    loaded = time.perf_counter() - begin
    vocabulary = llama_cpp.llama_vocab_n_tokens(llama_cpp.llama_model_get_vocab(model))
    tries = [measure_all(model, options, vocabulary, flash) for flash in FLASH[options.flash]]
    runs = [max(ways, key=lambda one: one["tok_s"]) for ways in zip(*tries)]
    description = ctypes.create_string_buffer(256)
    llama_cpp.llama_model_desc(model, description, 256)
    print(
        json.dumps(
            {
                "model": os.path.basename(options.model),
                "description": description.value.decode(),
                "threads": options.threads,
                "load_seconds": loaded,
                "peak_bytes": peak_bytes(),
                "runs": runs,
            }
        )
    )


def info(expected, cpu):
    """A llama.cpp of another version or kind would make another table."""
    text = llama_cpp.llama_print_system_info().decode()
    if expected and llama_cpp.__version__ != expected:
        fail(f"llama-cpp-python is {llama_cpp.__version__}, expected {expected}")
    if cpu == "avx2" and "AVX512 = 1" in text:
        fail("this llama.cpp uses AVX-512, expected one that was built without")
    print(
        json.dumps(
            {
                "version": llama_cpp.__version__,
                "system": " ".join(text.split()),
            }
        )
    )


def make(source, target, name):
    types = {
        "F32": llama_cpp.LLAMA_FTYPE_ALL_F32,
        "Q4_0": llama_cpp.LLAMA_FTYPE_MOSTLY_Q4_0,
        "Q8_0": llama_cpp.LLAMA_FTYPE_MOSTLY_Q8_0,
    }
    if name not in types:
        fail(f"{name}: unknown type, expected one of {', '.join(types)}")
    params = llama_cpp.llama_model_quantize_default_params()
    params.ftype = types[name]
    params.allow_requantize = True
    params.pure = False
    params.nthread = len(os.sched_getaffinity(0))
    llama_cpp.llama_backend_init()
    temporary = target + ".part"
    code = llama_cpp.llama_model_quantize(os.fsencode(source), os.fsencode(temporary), ctypes.byref(params))
    if code != 0:
        fail(f"{source}: quantising to {name} answered {code}")
    os.replace(temporary, target)


def parse(arguments):
    parser = argparse.ArgumentParser(prog="peer.py", description=__doc__.split("\n", maxsplit=1)[0])
    commands = parser.add_subparsers(dest="command", required=True)
    teller = commands.add_parser("info")
    teller.add_argument("--expect", help="the version it must be")
    teller.add_argument("--for", dest="cpu", help="avx2: it must not use AVX-512")
    maker = commands.add_parser("make")
    for name in ("source", "target", "type"):
        maker.add_argument(name)
    measurer = commands.add_parser("measure")
    measurer.add_argument("-m", "--model", required=True)
    for name, default in (
        ("threads", 2),
        ("prefill", 512),
        ("depth", 1024),
        ("batch", 16),
        ("tokens", 32),
        ("chunk", 512),
        ("repeat", 1),
    ):
        measurer.add_argument("--" + name, type=int, default=default)
    measurer.add_argument("--unified", action="store_true", help="one cache for all sequences of the batch")
    measurer.add_argument("--full-window", action="store_true", help="windowed layers keep all of the cache")
    measurer.add_argument(
        "--flash", choices=sorted(FLASH), default="best", help="flash attention; best: both, the faster for each work"
    )
    return parser.parse_args(arguments)


def main():
    options = parse(sys.argv[1:])
    llama_cpp.llama_log_set(SILENT, None)
    if options.command == "info":
        info(options.expect, options.cpu)
    elif options.command == "make":
        make(options.source, options.target, options.type)
    else:
        measure(options)


if __name__ == "__main__":
    main()
