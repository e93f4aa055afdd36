#!/usr/bin/env python3
"""Compares generation from Python with llama-cpp-python: the same .gguf file, prompts and threads, in turns.

  tools/bench/bench_python.py MODEL.gguf --fovea PYTHON --llama PYTHON [--pairs 20] [--threads 2] [--prompt 256] [--tokens 64]

Each program stays loaded in a Python of its own. One run reads a new prompt of random words and generates greedily. llama-cpp-python
becomes slower if it is to ignore the end of a text, so the model should be one that does not end, such as random weights. Prints the median
seconds of both, and the median and the 95 % interval of the ratios of the pairs, for the first token and for the whole call."""
import argparse
import json
import random
import statistics
import subprocess
import sys

from bench_against import interval
from serve_latency import WORDS

# A program reads a prompt a line, and prints the seconds of the first token and of all.
LOOP = """
for line in sys.stdin:
    begin = time.perf_counter()
    first = count = 0
    for _ in stream(json.loads(line)):
        first = first or time.perf_counter() - begin
        count += 1
    print(json.dumps([first, time.perf_counter() - begin, count]), flush=True)
"""
FOVEA = """
import json, sys, time
import fovea
fovea.set_threads(THREADS)
model = fovea.load(MODEL)
def stream(prompt):
    return model.stream(prompt, max_tokens=TOKENS, temperature=0, ignore_end=True, speculative_tokens=0)
"""
LLAMA = """
import json, sys, time
from llama_cpp import Llama
model = Llama(MODEL, n_ctx=CONTEXT, n_threads=THREADS, n_threads_batch=THREADS, verbose=False)
def stream(prompt):
    return model(prompt, max_tokens=TOKENS, temperature=0, stream=True)
"""


class Program:
    def __init__(self, python, code, given):
        values = {"MODEL": repr(given.model), "THREADS": given.threads, "TOKENS": given.tokens, "CONTEXT": given.prompt + given.tokens + 64}
        for name, value in values.items():
            code = code.replace(name, str(value))
        self.process = subprocess.Popen([python, "-c", code + LOOP], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def run(self, prompt):
        """Returns the seconds of the first token and of the whole call."""
        self.process.stdin.write(json.dumps(prompt) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            sys.exit("a program ended; see its error above")
        return json.loads(line)


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("model")
    options.add_argument("--fovea", default=sys.executable, help="a Python with fovea")
    options.add_argument("--llama", default=sys.executable, help="a Python with llama-cpp-python")
    for name, default in (("pairs", 20), ("threads", 2), ("prompt", 256), ("tokens", 64)):
        options.add_argument("--" + name, type=int, default=default)
    given = options.parse_args()
    chance = random.Random(1)
    programs = {"fovea": Program(given.fovea, FOVEA, given), "llama-cpp-python": Program(given.llama, LLAMA, given)}

    def prompt():
        return " ".join(chance.choice(WORDS) for _ in range(given.prompt))

    for program in programs.values():
        program.run(prompt())  # reads the weights
    runs = {name: [] for name in programs}
    for pair in range(given.pairs):
        text = prompt()
        for name in list(programs)[:: 1 if pair % 2 == 0 else -1]:
            runs[name].append(programs[name].run(text))
    counts = {name: statistics.median(run[2] for run in each) for name, each in runs.items()}
    print("pieces of a stream:", counts)
    for index, what in enumerate(("first token", "whole call")):
        ours, theirs = ([run[index] for run in each] for each in runs.values())
        ratios = [b / a for a, b in zip(ours, theirs)]
        bounds = interval(ratios)
        print(f"{what}: fovea {statistics.median(ours):.3f} s, llama-cpp-python {statistics.median(theirs):.3f} s, ratio {statistics.median(ratios):.2f}"
              + (f" ({bounds[0]:.2f} to {bounds[1]:.2f})" if bounds else ""))


if __name__ == "__main__":
    main()
