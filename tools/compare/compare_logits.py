#!/usr/bin/env python3
"""Loads a model directory with transformers and compares token ids and logits with those of `fovea trace`.

Usage: compare_logits.py DIR [--text TEXT] [--fovea PROGRAM]. Prints "ok" or the first difference; exit code 0 or 1."""
import argparse
import pathlib
import subprocess
import sys
import tempfile

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "goldens"))
from harness import add_program  # noqa: E402
import torch  # noqa: E402
from safetensors.torch import load_file  # noqa: E402
from transformers import AutoModelForCausalLM, AutoTokenizer  # noqa: E402

TOLERANCE = 1e-4  # relative to the largest logit: sums in a different order differ by about 1e-6


def trace(program, folder, *how):
    with tempfile.TemporaryDirectory() as holder:
        out = pathlib.Path(holder) / "trace.safetensors"
        subprocess.run([program, "trace", folder, *how, "--out", str(out)], check=True, stdout=subprocess.DEVNULL)
        return load_file(out)["logits"]


def difference(program, folder, text):
    """Returns None, or the first difference."""
    ids = AutoTokenizer.from_pretrained(folder)(text)["input_ids"]
    model = AutoModelForCausalLM.from_pretrained(folder).eval().float()
    # fovea's logits for the text can equal transformers' logits for its ids only if both have the same ids.
    read, given = trace(program, folder, "--text", text), trace(program, folder, "--ids", ",".join(map(str, ids)))
    if read.shape != given.shape:
        return f"transformers reads {len(ids)} tokens, fovea {read.shape[1]}"
    if not torch.equal(read, given):
        return f"the token ids differ; transformers has {ids}"
    with torch.no_grad():
        expected = model(torch.tensor([ids])).logits
    if read.shape != expected.shape:
        return f"logits have the shape {tuple(read.shape)}, transformers' {tuple(expected.shape)}"
    apart = (read - expected).abs() / expected.abs().max()
    if not apart.max() <= TOLERANCE:  # a NaN is a difference
        position = (~(apart <= TOLERANCE)).nonzero()[0].tolist()
        return f"logits{position} is {read[tuple(position)]:.8g}, transformers has {expected[tuple(position)]:.8g}"
    print(f"{len(ids)} tokens, logits within {apart.max():.1e} of the largest")
    return None


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder")
    parser.add_argument("--text", default="The eye of a fox sees what light falls on it.")
    add_program(parser)
    options = parser.parse_args()
    found = difference(options.fovea, options.folder, options.text)
    print(found or "ok")
    sys.exit(found is not None)
