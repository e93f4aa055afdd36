#!/usr/bin/env python3
"""Compares the vectors of text encoders in .gguf files by fovea with those of llama.cpp for the same files, and with those of the directories.

Usage: compare_gguf_encoders.py MODEL... [--fovea PROGRAM] [--text TEXT]... [--type NAME]. MODEL is a directory, which fovea converts to files of
the types (default: fp32, fp16 and q8_0), or a .gguf file. Prints a line for each file: the largest difference of an element of a vector, and
the smallest cosine, between fovea and llama.cpp, and between the file and its directory by fovea. Exit code 1 if an element of an fp32 file
differs by more than 3e-3 (llama.cpp approximates GELU, in tables of half precision) or a cosine is below 0.99. Needs xllamacpp."""
import argparse
import json
import math
import pathlib
import subprocess
import sys
import tempfile

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "goldens"))
from harness import add_program  # noqa: E402
from llama_cpp import vectors  # noqa: E402

TEXTS = ["the fox sees the bird", "A BIRD hears,", "light falls on the eye", "night", "Café?", "the fox and the bird and the eye, in the night"]


def by_fovea(program, model, texts):
    done = subprocess.run([program, "embed", str(model), "--json", "--normalize"], input="\n".join(texts).encode() + b"\n", stdout=subprocess.PIPE, check=True)
    return [json.loads(line)["embedding"] for line in done.stdout.splitlines()]


def difference(rows, others):
    """Returns the largest difference of an element and the smallest cosine of vectors of length 1."""
    cosine = min(sum(a * b for a, b in zip(row, other)) / math.hypot(*other) / math.hypot(*row) for row, other in zip(rows, others, strict=True))
    return max(abs(a - b) for row, other in zip(rows, others) for a, b in zip(row, other)), cosine


def by_llama_cpp(path, texts):
    try:
        return vectors(path, texts)
    except ValueError:  # the file names no pooling; fovea then computes the mean
        return vectors(path, texts, "mean")


def files_of(program, model, types, folder):
    """Yields the .gguf files of a model with their types."""
    if model.is_file():
        yield model, "as given"
        return
    for kind in types:
        path = folder / f"{model.name}-{kind}.gguf"
        subprocess.run([program, "convert", str(model), str(path), "--dtype", kind], stdout=subprocess.DEVNULL, check=True)
        yield path, kind


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", type=pathlib.Path, nargs="+")
    parser.add_argument("--text", action="append", default=[])
    parser.add_argument("--type", action="append", default=[])
    add_program(parser)
    options = parser.parse_args()
    texts, wrong = options.text or TEXTS, 0
    for model in options.models:
        with tempfile.TemporaryDirectory() as folder:
            original = by_fovea(options.fovea, model, texts)
            for path, kind in files_of(options.fovea, model, options.type or ["fp32", "fp16", "q8_0"], pathlib.Path(folder)):
                own = by_fovea(options.fovea, path, texts)
                (largest, cosine), (drift, kept) = difference(own, by_llama_cpp(path, texts)), difference(own, original)
                wrong += cosine < 0.99 or (kind == "fp32" and largest > 3e-3)
                print(f"{model.name:<24}{kind:<10}llama.cpp: {largest:.1e}, cosine {cosine:.6f}    directory: {drift:.1e}, cosine {kept:.6f}", flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
