#!/usr/bin/env python3
"""Trains a small model by GRPO to add two numbers of two digits: first a base on sums of which 15% are right, 60% are too large by 10, and
25% are random, then reinforcement with the reward "exact" only. Prints the share of right answers to 500 sums that no step has seen.

    FOVEA_BIN=build/release/fovea python3 tools/demos/sums_demo.py FOLDER [--seed N] [--base-steps N] [--steps N]
"""
import argparse
import json
import os
import pathlib
import random
import subprocess
import time

FOVEA = os.environ.get("FOVEA_BIN", "fovea")


def run(*arguments):
    subprocess.run([FOVEA, *map(str, arguments)], check=True)


def record(a, b, key, answer=None):
    return json.dumps({"prompt": f"{a}+{b}=", key: str(a + b if answer is None else answer)}) + "\n"


def mostly_wrong(answer, generator):
    kind = generator.random()
    return answer if kind < 0.15 else answer + 10 if kind < 0.75 else generator.randint(20, 198)


def write_data(folder, seed):
    sums = [(a, b) for a in range(10, 100) for b in range(10, 100)]
    random.Random(seed).shuffle(sums)
    held_out, training = sums[:500], sums[500:]
    (folder / "held_out.jsonl").write_text("".join(record(*each, "answer") for each in held_out))
    (folder / "prompts.jsonl").write_text("".join(record(*each, "answer") for each in training))
    generator = random.Random(seed + 4)
    answers = [record(a, b, "completion", mostly_wrong(a + b, generator)) for a, b in training for _ in range(3)]
    generator.shuffle(answers)
    (folder / "answers.jsonl").write_text("".join(answers))
    (folder / "text.txt").write_text("".join(f"{a}+{b}={a + b}\n" for a, b in training[:1000]))


def rewards(out):
    """Returns the pairs (step, share of right answers to held-out sums) of the log."""
    entries = [json.loads(line) for line in (out / "log.jsonl").read_text().splitlines()]
    return [(e["step"], e["reward"]) for e in entries if "reward" in e and "loss" not in e]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--base-steps", type=int, default=3000)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--learning-rate", type=float, default=3e-4)
    parser.add_argument("--prompts", type=int, default=16)
    parser.add_argument("--generations", type=int, default=16)
    o = parser.parse_args()
    folder = o.folder
    folder.mkdir(parents=True, exist_ok=True)
    write_data(folder, o.seed)
    run("tokenize", "--train", "bpe", "--vocab-size", 257, folder / "text.txt", "--out", folder / "tokenizer")
    common = ("--seed", o.seed, "--dtype", "fp32", "--sample-tokens", 0)
    run("train", folder / "text.txt", "--out", folder / "random", "--preset", "tiny", "--tokenizer", folder / "tokenizer", "--layers", 3, "--heads", 4,
        "--width", 128, "--context", 16, "--batch", 4, "--steps", 1, "--warmup", 0, "--learning-rate", 1e-6, *common)
    run("train", folder / "answers.jsonl", "--from", folder / "random", "--out", folder / "base", "--steps", o.base_steps, "--batch", 64,
        "--length", 16, "--learning-rate", 2e-3, "--warmup", 100, "--evaluate-every", 500, *common)
    start = time.time()
    run("train", folder / "prompts.jsonl", "--from", folder / "base", "--out", folder / "grpo", "--objective", "grpo", "--reward", "exact",
        "0*regex:^[0-9]{2,3}$", "--validation-prompts", folder / "held_out.jsonl", "--evaluation-prompts", 0, "--prompts", o.prompts, "--generations", o.generations,
        "--answer-tokens", 5, "--batch", 512, "--steps", o.steps, "--learning-rate", o.learning_rate, "--schedule", "constant", "--warmup", 5,
        "--weight-decay", 0, "--beta2", 0.95, "--evaluate-every", 40, "--save-every", 100, *common)
    found = rewards(folder / "grpo")
    first = json.loads(next(line for line in (folder / "grpo/log.jsonl").read_text().splitlines() if '"reward_regex"' in line))
    print(f"seed {o.seed}: format right in {first['reward_regex']:.1%} of the base's answers, {first['reward_exact']:.1%} of its sums; "
          f"greedy answers: {found[0][1]:.1%} right before, "
          f"{max(value for _, value in found):.1%} at best, {found[-1][1]:.1%} at the end, after {time.time() - start:.0f} s")


if __name__ == "__main__":
    main()
