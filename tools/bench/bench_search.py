#!/usr/bin/env python3
"""Measures `fovea search` on an index of many passages: the time and the size of a build, the time of searches, and of changes.

Usage: bench_search.py [--fovea PROGRAM] [--passages N] [--width D] [--forms float32,int8,binary] [--graph] [--keep DIR]. The texts are random
words in .jsonl files, and the model is a table of random vectors (StaticEmbedding), so that the time is that of the index and not of a model.
Random texts are the worst case for the graph and for binary vectors: no passage is much nearer than the others. The time of a search includes
the start of the program and the opening of the index, which reads the vectors once to check them; bench_scan measures the comparison alone. A
million passages (the default is 100000) take some minutes."""
import argparse
import json
import os
import pathlib
import random
import shutil
import string
import struct
import subprocess
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
WORDS, PASSAGE, ROWS_OF_FILE = 30_000, 40, 20_000
BLOCK = 65521  # random numbers that are repeated in the table; a prime, so that its rows differ


def write_model(folder, words, width):
    """Writes a model of sentence-transformers whose only module is a table of random vectors."""
    module = folder / "0_StaticEmbedding"
    module.mkdir(parents=True)
    (folder / "modules.json").write_text(json.dumps([{"idx": 0, "name": "0", "path": module.name,
                                                      "type": "sentence_transformers.models.StaticEmbedding"}]))
    vocabulary = {"[UNK]": 0} | {word: i + 1 for i, word in enumerate(words)}
    (module / "tokenizer.json").write_text(json.dumps({
        "version": "1.0", "truncation": None, "padding": None, "added_tokens": [], "normalizer": None, "pre_tokenizer": {"type": "Whitespace"},
        "post_processor": None, "decoder": None, "model": {"type": "WordLevel", "vocab": vocabulary, "unk_token": "[UNK]"}}))
    generator, size = random.Random(1), 4 * len(vocabulary) * width
    header = json.dumps({"embedding.weight": {"dtype": "F32", "shape": [len(vocabulary), width], "data_offsets": [0, size]}}).encode()
    block = struct.pack(f"<{BLOCK}f", *(generator.gauss(0, 1) for _ in range(BLOCK)))
    with open(module / "model.safetensors", "wb") as file:
        file.write(struct.pack("<Q", len(header)) + header + (block * (size // len(block) + 1))[:size])


def write_texts(folder, words, passages):
    folder.mkdir()
    generator = random.Random(2)
    for first in range(0, passages, ROWS_OF_FILE):
        with open(folder / f"{first:09}.jsonl", "w", encoding="utf-8") as file:
            for i in range(first, min(first + ROWS_OF_FILE, passages)):
                text = " ".join(generator.choices(words, k=PASSAGE))
                file.write(json.dumps({"text": text, "label": f"l{i % 100}", "date": f"{2000 + i % 25}-01-01"}) + "\n")


def run(*command):
    """Returns the output of a command, its seconds, and its memory in bytes."""
    begin = time.monotonic()
    with subprocess.Popen(list(map(str, command)), stdout=subprocess.PIPE) as process:
        output = process.stdout.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise SystemExit(f"{' '.join(map(str, command))}: ended with code {process.returncode}")
    return output, time.monotonic() - begin, usage.ru_maxrss * 1024


def measure(arguments, folder):
    generator = random.Random(3)
    words = sorted({"".join(generator.choices(string.ascii_lowercase, k=generator.randint(3, 9))) for _ in range(WORDS)})
    texts, model = folder / "texts", folder / "model"
    write_model(model, words, arguments.width)
    write_texts(texts, words, arguments.passages)
    queries = [" ".join(generator.choices(words, k=8)) for _ in range(arguments.queries)]
    wanted = {}  # the results of the first form
    for form in arguments.forms.split(","):
        index = folder / f"index-{form}"
        graph = ["--graph"] if arguments.graph and form == "float32" else []
        output, seconds, memory = run(arguments.fovea, "search", "--build", texts, "--model", model, "--out", index, "--vectors", form, *graph, "--json")
        size = sum(path.stat().st_size for path in index.rglob("*"))
        built = json.loads(output)
        print(f"{form}: {built['passages']} passages built in {seconds:.1f} s, {memory / 1e9:.2f} GB of memory; the index has {size / 1e9:.2f} GB")
        for each in built.get("recall", []):
            print(f"  --graph-candidates {each['candidates']}: recall {each['recall']:.3f}")

        def search(what, *options, compare=False):
            times, memories, common = [], [], 0
            for query in queries:
                output, seconds, memory = run(arguments.fovea, "search", index, query, "--top", 10, "--json", *options)
                times.append(seconds)
                memories.append(memory)
                found = {result["text"] for result in json.loads(output)["results"]}
                common += len(found & wanted.setdefault(query, found)) if compare else 0
            shared = f"; {100 * common / (10 * len(queries)):.0f}% of the results of the first form" if compare else ""
            print(f"  search{what}: {1000 * sorted(times)[len(times) // 2]:.0f} ms, {max(memories) / 1e9:.2f} GB{shared}")

        search("", compare=True)
        search(" --hybrid", "--hybrid")
        search(" --where (1%)", "--where", "label=l7")
        if graph:
            search(" in the graph", "--graph-candidates", 128)
        new = texts / "zzz.txt"
        new.write_text("a new file\n")
        print(f"  --add of a file: {1000 * run(arguments.fovea, 'search', index, '--add', new)[1]:.0f} ms")
        print(f"  --delete of a file: {1000 * run(arguments.fovea, 'search', index, '--delete', new)[1]:.0f} ms")
        new.unlink()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fovea", default=ROOT / "build/release/fovea")
    parser.add_argument("--passages", type=int, default=100_000)
    parser.add_argument("--width", type=int, default=384)
    parser.add_argument("--forms", default="float32,int8,binary")
    parser.add_argument("--graph", action="store_true", help="also build a graph of the float32 vectors")
    parser.add_argument("--queries", type=int, default=5)
    parser.add_argument("--keep", type=pathlib.Path, help="a new directory for the texts and the indexes, which remain")
    arguments = parser.parse_args()
    folder = arguments.keep or pathlib.Path(tempfile.mkdtemp())
    folder.mkdir(exist_ok=True)
    try:
        measure(arguments, folder)
    finally:
        if not arguments.keep:
            shutil.rmtree(folder)


if __name__ == "__main__":
    main()
