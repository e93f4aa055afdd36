#!/usr/bin/env python3
"""Runs the chain of docs/align.md in the world of align_world.py: base, fine-tuned model, reward model, DPO, PPO, GRPO.

    FOVEA_BIN=build/release/fovea python3 tools/demos/align_demo.py FOLDER [--seed N] [--hack]

The models are in FOLDER/seed-N; a second call continues an interrupted one. Each command is printed before it runs. At the end,
each model answers the prompts that no step has seen, and the true reward of the world, which no step has seen either, scores the
answers. --record FILE adds these numbers as a line of JSON, as lab/records/align.jsonl has them for docs/align.md. --hack also trains with GRPO without the loss of the divergence, at a high learning rate: the model finds texts that the
reward model rates too high.
"""
import argparse
import json
import os
import shlex
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import align_world as world

FOVEA = os.environ.get("FOVEA_BIN", "fovea")
SAMPLES = 2  # answers to each held-out prompt
REWARD_SCALE = 0.2  # of the reward model's output, whose deviation among the answers of the fine-tuned model is about 4


def fovea(*arguments, text=None):
    """Runs the program; returns its output."""
    result = subprocess.run([FOVEA, *map(str, arguments)], input=text, capture_output=True, text=True, check=False)
    if result.returncode != 0:
        sys.exit(f"align: fovea {arguments[0]} failed with exit code {result.returncode}\n{result.stderr}")
    return result.stdout


def lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def results(out):
    """Returns what a beginner needs of the log of a run: the last measurements on held-out data, or the course of the rewards."""
    log = lines(out / "log.jsonl")
    rewards = [entry["reward"] for entry in log if "reward" in entry and "loss" in entry]
    if rewards:
        return f"reward of the generated answers, by the reward model: {rewards[0]:.2f} in the first batch, {rewards[-1]:.2f} in the last"
    last = [entry for entry in log if "eval_loss" in entry][-1]
    pairs = f", {last['accuracy']:.0%} of the pairs in the right order" if "margin" in last else ""
    return f"held-out loss {last['eval_loss']:.2f}{pairs}"


class Chain:
    """Trains the models one after another in a folder."""

    def __init__(self, folder, seed):
        self.folder, self.seed, self.number = folder, seed, 0

    def train(self, title, data, out, *options):
        self.number += 1
        arguments = ["train", self.folder / data, "--out", self.folder / out, *options, "--seed", self.seed, "--sample-every", 0]
        print(f"\n{self.number}. {title}\n$ fovea {shlex.join(map(str, arguments))}", flush=True)
        begin = time.monotonic()
        fovea(*arguments)
        print(f"   {results(self.folder / out)}; {time.monotonic() - begin:.0f} s", flush=True)

    def write(self, title, objective, out, *options):
        """Trains on answers that the model writes and the reward model judges."""
        self.train(title, "prompts.jsonl", out, "--objective", objective, "--from", self.folder / "sft", "--reward",
                   f"{REWARD_SCALE}*model:{self.folder / 'reward'}", "--prompts", 16, "--generations", 8, "--answer-tokens", 60,
                   "--warmup", 5, "--evaluate-every", 1000, *options)

    def run(self, hack):
        """Returns the models with their names."""
        f = self.folder
        self.train("Base: a small model learns the language of the world from its text.", "base.txt", "base", "--preset", "nano",
                   "--layers", 2, "--context", 160, "--tokenizer", "bpe:700", "--steps", 500, "--batch", 16, "--evaluate-every", 250)
        self.train("Fine-tuned: it learns from conversations to answer questions, in every manner.", "chats.jsonl", "sft", "--from",
                   f / "base", "--chat-template", "chatml", "--steps", 900, "--batch", 16, "--learning-rate", 1e-3, "--warmup", 10,
                   "--evaluate-every", 300)
        self.train("Reward model: a copy learns from pairs of answers which one a judge preferred.", "pairs.jsonl", "reward",
                   "--from", f / "sft", "--objective", "reward", "--steps", 300, "--batch", 16, "--learning-rate", 5e-4, "--warmup", 10,
                   "--evaluate-every", 300)
        self.train("DPO: the fine-tuned model learns from the same pairs, without a reward model.", "pairs.jsonl", "dpo", "--from",
                   f / "sft", "--objective", "dpo", "--beta", 1, "--chosen-weight", 2, "--steps", 300, "--batch", 32, "--learning-rate",
                   2e-4, "--warmup", 10, "--evaluate-every", 300)
        self.write("PPO: the fine-tuned model writes answers and learns from the judgements of the reward model.", "ppo", "ppo",
                   "--steps", 128, "--minibatches", 2, "--learning-rate", 2e-4, "--kl-weight", 0.24, "--gae-lambda", 1)
        self.write("GRPO: the same, without a value head: it compares the answers to one prompt.", "grpo", "grpo", "--steps", 80,
                   "--learning-rate", 2e-4, "--kl-weight", 0.45)
        models = {"fine-tuned": f / "sft", "DPO": f / "dpo", "PPO": f / "ppo", "GRPO": f / "grpo"}
        if hack:
            self.write("Reward hacking: GRPO without the loss of the divergence, at five times the learning rate.", "grpo", "hacked",
                       "--steps", 100, "--learning-rate", 1e-3, "--kl-weight", 0)
            models["GRPO without KL"] = f / "hacked"
        return models


def answers(model, questions, seed):
    """Returns a sampled answer of a model to each question, in a conversation of its own."""
    def answer(numbered):
        number, question = numbered
        found = fovea("chat", model, "--json", "-n", 60, "--temperature", 1, "--top-k", 0, "--top-p", 1, "--threads", 1,
                      "--seed", 1000 * seed + number, text=question + "\n")
        return json.loads(found)["messages"][-1]["content"]
    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(answer, enumerate(questions)))


def loss(model, chats):
    """Returns the loss of a token of the answers, and the number of these tokens for each answer."""
    found = json.loads(fovea("eval", model, chats, "--json"))
    return found["loss"], found["tokens"] / found["sequences"]


def divergence(folder, name, model, reference, questions, texts):
    """Estimates KL(model || reference) of an answer, in nats, from the answers that the model has written."""
    path = folder / f"written_{name.replace(' ', '_')}.jsonl"
    world.write_lines(path, [world.conversation(*each) for each in zip(questions, texts)])
    own, tokens = loss(model, path)
    return tokens * (loss(reference, path)[0] - own)


def report(folder, models, questions, written):
    reference, held_out = models["fine-tuned"], folder / "chats_held_out.jsonl"
    base, rows = [world.true_reward(text) for text in written["fine-tuned"]], []
    length, first = sum(map(len, written["fine-tuned"])), loss(reference, held_out)[0]
    print(f"\n{'model':<16}  true reward   wins   ties  length     KL  loss of chats")
    for name, texts in written.items():
        rewards = [world.true_reward(text) for text in texts]
        row = {"model": name, "true_reward": sum(rewards) / len(rewards)}
        shown = f"{name:<16}  {row['true_reward']:11.2f}"
        if name != "fine-tuned":
            row["wins"], row["ties"] = (sum(map(compare, rewards, base)) / len(base) for compare in (float.__gt__, float.__eq__))
            row |= {"length": sum(map(len, texts)) / length, "divergence": divergence(folder, name, models[name], reference, questions, texts),
                    "loss_change": loss(models[name], held_out)[0] / first - 1}
            shown += f"  {row['wins']:5.0%}  {row['ties']:5.0%}  {row['length']:6.0%}  {row['divergence']:5.1f}  {row['loss_change']:+13.1%}"
        print(shown)
        rows.append(row)
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--hack", action="store_true")
    parser.add_argument("--record", type=Path)
    o = parser.parse_args()
    begin = time.monotonic()
    folder = o.folder / f"seed-{o.seed}"
    world.write_world(folder, o.seed)
    print("The world: people ask about things, and answers are kind, plain or rude in six places. A judge prefers kind answers;\n"
          "the models see only the judge's choices between two answers. The true reward of an answer counts its places: from 1, all\n"
          "kind, to -1, all rude or not of the form of an answer.")
    models = Chain(folder, o.seed).run(o.hack)
    prompts = lines(folder / "held_out.jsonl")
    questions = [each["prompt"] for each in prompts] * SAMPLES
    written = {name: answers(model, questions, o.seed) for name, model in models.items()}
    print(f"\nEach model answers {len(prompts)} questions that no step has seen, {SAMPLES} times each. One of them: {questions[0]}")
    for name, texts in written.items():
        print(f"  {name}: {' '.join(texts[0].split())}")
    rows = report(folder, models, questions, written)
    if o.record:
        machine = {each["topic"]: each["message"] for each in json.loads(fovea("doctor", "--json"))["findings"]}
        record = {"seed": o.seed, "date": time.strftime("%Y-%m-%d"), "processor": machine["processor"],
                  "instruction_sets": machine["instruction sets"], "models": rows}
        others = [each for each in lines(o.record) if each["seed"] != o.seed] if o.record.exists() else []
        o.record.write_text("".join(json.dumps(each) + "\n" for each in sorted([*others, record], key=lambda each: each["seed"])))
    print("\nwins, ties   answers whose true reward is greater than, or equal to, that of the fine-tuned model's answer\n"
          "length       characters of the answers, compared with those of the fine-tuned model\n"
          "KL           how far the model has moved from the fine-tuned one, in nats for each answer\n"
          "loss         change of the loss on other conversations in every manner: what the preference costs")
    print(f"\n{time.monotonic() - begin:.0f} s in all")


if __name__ == "__main__":
    main()
