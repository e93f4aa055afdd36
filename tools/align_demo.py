#!/usr/bin/env python3
"""Runs the chain of docs/align.md in the world of align_world.py: base, fine-tuned model, reward model, DPO, PPO, GRPO.

    FOVEA_BIN=build/release/fovea python3 tools/align_demo.py FOLDER [--seed N] [--hack]

Each command is printed before it runs. At the end, each model answers the prompts that no step has seen, and the true reward of
the world, which no step has seen either, scores the answers. --hack also trains with GRPO
without the loss of the divergence, at a high learning rate: the model finds texts that the reward model rates too high.
"""
import argparse
import json
import os
import shlex
import subprocess
import sys
import time
from pathlib import Path

import align_world as world

FOVEA = os.environ.get("FOVEA_BIN", "fovea")
SAMPLES = 2  # answers to each held-out prompt


def run(*arguments):
    words = [str(word) for word in arguments]
    print("$ fovea " + shlex.join(words), flush=True)
    begin = time.monotonic()
    result = subprocess.run([FOVEA, *words], capture_output=True, text=True, check=False)
    if result.returncode != 0:
        sys.exit(f"align: the command failed with exit code {result.returncode}\n{result.stderr}")
    print(f"  {time.monotonic() - begin:.0f} s", flush=True)


def answers(model, questions, seed):
    """Returns the sampled answers of a model to each question, in a conversation of its own."""
    found = []
    for number, question in enumerate(questions):
        command = [FOVEA, "chat", str(model), "--json", "-n", "120", "--temperature", "1", "--top-k", "0", "--top-p", "1",
                   "--seed", str(1000 * seed + number)]
        result = subprocess.run(command, input=question + "\n", capture_output=True, text=True, check=True)
        found.append(json.loads(result.stdout)["messages"][-1]["content"])
    return found


def loss(model, chats):
    result = subprocess.run([FOVEA, "eval", str(model), str(chats), "--json"], capture_output=True, text=True, check=True)
    return json.loads(result.stdout)["loss"]


def train(folder, seed, hack):
    """Runs the steps of the chain; returns the models with their names."""
    f = folder
    common = ["--seed", seed, "--sample-every", 0]
    run("train", f / "base.txt", "--out", f / "base", "--preset", "nano", "--context", 160, "--tokenizer", "bpe:400",
        "--steps", 800, "--batch", 16, "--evaluate-every", 400, *common)
    run("train", f / "chats.jsonl", "--from", f / "base", "--out", f / "sft", "--chat-template", "chatml", "--steps", 300,
        "--batch", 16, "--learning-rate", 1e-3, "--warmup", 10, "--evaluate-every", 100, *common)
    run("train", f / "pairs.jsonl", "--from", f / "sft", "--out", f / "reward", "--objective", "reward", "--steps", 300,
        "--batch", 16, "--learning-rate", 5e-4, "--warmup", 10, "--evaluate-every", 100, *common)
    run("train", f / "pairs.jsonl", "--from", f / "sft", "--out", f / "dpo", "--objective", "dpo", "--beta", 5, "--steps", 120,
        "--batch", 32, "--learning-rate", 2e-4, "--warmup", 10, "--evaluate-every", 60, *common)
    reward = f"model:{f / 'reward'}"
    writing = ["--from", f / "sft", "--reward", reward, "--answer-tokens", 100, "--warmup", 5, "--evaluate-every", 1000,
               "--prompts", 16, "--answers", 8, *common]
    run("train", f / "prompts.jsonl", "--out", f / "ppo", "--objective", "ppo", "--steps", 160, "--learning-rate", 5e-5,
        "--kl-weight", 0.5, *writing)
    run("train", f / "prompts.jsonl", "--out", f / "grpo", "--objective", "grpo", "--steps", 60, "--learning-rate", 2e-4,
        "--kl-weight", 0.3, *writing)
    models = {"fine-tuned": f / "sft", "DPO": f / "dpo", "PPO": f / "ppo", "GRPO": f / "grpo"}
    if hack:
        run("train", f / "prompts.jsonl", "--out", f / "hacked", "--objective", "grpo", "--steps", 100, "--learning-rate", 1e-3,
            "--kl-weight", 0, *writing)
        models["GRPO without KL"] = f / "hacked"
    return models


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--hack", action="store_true")
    o = parser.parse_args()
    begin = time.monotonic()
    world.write_world(o.folder, o.seed)
    models = train(o.folder, o.seed, o.hack)
    questions = [json.loads(line)["prompt"] for line in (o.folder / "held_out.jsonl").read_text().splitlines()] * SAMPLES
    written = {name: answers(model, questions, o.seed) for name, model in models.items()}
    print(f"\n{questions[0]}")
    for name, texts in written.items():
        print(f"  {name}: {texts[0]}")
    base = [world.true_reward(text) for text in written["fine-tuned"]]
    length = sum(map(len, written["fine-tuned"]))
    print(f"\n{'model':<16}  true reward   wins  ties   length  loss of chats")
    first = loss(models["fine-tuned"], o.folder / "chats_held_out.jsonl")
    for name, texts in written.items():
        rewards = [world.true_reward(text) for text in texts]
        wins = sum(a > b for a, b in zip(rewards, base)) / len(base)
        ties = sum(a == b for a, b in zip(rewards, base)) / len(base)
        change = loss(models[name], o.folder / "chats_held_out.jsonl") / first - 1
        print(f"{name:<16}  {sum(rewards) / len(rewards):11.2f}  {wins:5.0%} {ties:5.0%}  {sum(map(len, texts)) / length:6.0%}  {change:+13.1%}")
    print(f"\n{time.monotonic() - begin:.0f} s in all")


if __name__ == "__main__":
    main()
