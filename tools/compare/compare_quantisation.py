#!/usr/bin/env python3
"""Compares the quantised .gguf files of fovea with those of llama-quantize, and prints a table in Markdown.

Usage: compare_quantisation.py MODEL TEXT... --llama FOLDER [--types q4_k_m,...] [--readers fovea,llama] [--chunks N] [--files DIR]

MODEL is a directory or .gguf file with full weights, which both programs quantise from the same fp32 file. FOLDER contains llama-quantize
and llama-perplexity. Each file is read by `fovea eval --against` and by `llama-perplexity --kl-divergence`, each against its own results
with the fp32 file. llama-perplexity counts only the second half of each window; with --chunks it reads only the first N windows. Finished
measurements stay in DIR, so that an interrupted comparison continues. FOVEA_BIN is the program (default: build/release/fovea)."""
import argparse
import json
import pathlib
import re
import subprocess
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "goldens"))
from harness import PROGRAM, ROOT  # noqa: E402

TYPES = "q8_0,q6_k,q5_k_m,q5_1,q5_0,q4_k_m,q4_1,q4_0,iq4_nl,iq4_xs,q3_k_m,q2_k"


def run(*command):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, errors="replace", check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}: exit status {done.returncode}\n{done.stderr[-2000:]}")
    return done.stdout + done.stderr


class Comparison:
    def __init__(self, options):
        self.fovea = PROGRAM
        self.llama, self.folder, self.threads = options.llama, options.files, ["-t", options.threads]
        self.folder.mkdir(parents=True, exist_ok=True)
        self.text, self.base, self.logits = self.folder / "text.txt", self.folder / "fp32.gguf", self.folder / "logits"
        self.text.write_bytes(b"".join(path.read_bytes() for path in options.text))
        if not self.base.is_file():
            run(self.fovea, "convert", options.model, self.base, "--dtype", "fp32")
        self.windows = ["-f", self.text, "-c", options.context, "--chunks", options.chunks, *self.threads]
        self.done_path = self.folder / "measured.json"
        self.done = json.loads(self.done_path.read_text()) if self.done_path.is_file() else {}

    def file(self, writer, name):
        path = self.folder / f"{name}-{writer}.gguf"
        if path.is_file():
            return path
        if writer == "fovea":
            run(self.fovea, "convert", self.base, path, "--dtype", name)
        else:
            run(self.llama / "llama-quantize", self.base, path, name.upper())
        return path

    def read_by_fovea(self, path):
        result = json.loads(run(self.fovea, "eval", path, self.text, "--against", self.base, "--json", *self.threads).splitlines()[0])
        return {"perplexity": (result["perplexity"], result["perplexity_error"]), "tokens": result["tokens"],
                "loss": (result["loss_difference"], result["loss_difference_error"]),
                "divergence": (result["divergence"], result["divergence_error"]),
                "same": (1 - result["flips"], result["flips_error"])}

    def read_by_llama(self, path):
        perplexity = self.llama / "llama-perplexity"
        if not self.logits.is_file():
            run(perplexity, "-m", self.base, *self.windows, "--save-all-logits", self.logits)
        for _ in range(3):  # it sometimes ends before it has printed its last lines
            text = run(perplexity, "-m", path, *self.windows, "--kl-divergence", "--kl-divergence-base", self.logits)
            if "Same top p:" in text:
                break

        def value(label, scale=1.0):
            found = re.search(re.escape(label) + r"\s*:\s*(-?[\d.]+)\s*±\s*([\d.]+)", text)
            if found is None:
                sys.exit(f"llama-perplexity: no \"{label}\" in the output for {path}; expected statistics\n{text[-1000:]}")
            return float(found[1]) / scale, float(found[2]) / scale
        return {"perplexity": value("Mean PPL(Q)"), "loss": value("Mean ln(PPL(Q)/PPL(base))"), "divergence": value("Mean    KLD"),
                "same": value("Same top p", 100)}

    def measured(self, reader, writer, name):
        key = f"{reader} {writer} {name}"
        if key not in self.done:
            path = self.file(writer, name)
            self.done[key] = getattr(self, f"read_by_{reader}")(path) | {"bytes": path.stat().st_size}
            self.done_path.write_text(json.dumps(self.done, indent=1))
        return self.done[key]


def cells(result):
    def shown(key, form, scale=1):
        value, error = result[key]
        return f"{value * scale:{form}} ± {error * scale:{form}}"
    return f"{shown('perplexity', '.2f')} | {shown('loss', '.5f')} | {shown('divergence', '.6f')} | {shown('same', '.2f', 100)}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=pathlib.Path)
    parser.add_argument("text", type=pathlib.Path, nargs="+")
    parser.add_argument("--llama", type=pathlib.Path, required=True)
    parser.add_argument("--types", default=TYPES)
    parser.add_argument("--readers", default="fovea,llama")
    parser.add_argument("--chunks", type=int, default=-1, help="windows that llama-perplexity reads; -1: all")
    parser.add_argument("--context", type=int, default=256, help="tokens of a window of llama-perplexity")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--files", type=pathlib.Path, default=ROOT / "build/quantisation")
    options = parser.parse_args()
    comparison = Comparison(options)
    print("| type | written by | read by | bytes | perplexity | loss minus that of fp32 | KL divergence | same top token, % |\n"
          "|---|---|---|---|---|---|---|---|", flush=True)
    for name in options.types.split(","):
        for reader in options.readers.split(","):
            for writer in ("fovea", "llama"):
                result = comparison.measured(reader, writer, name)
                print(f"| {name} | {writer} | {reader} | {result['bytes']:,} | {cells(result)} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
