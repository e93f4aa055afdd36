#!/usr/bin/env python3
"""Measures whether an embedder learns more from a cross-encoder than from the same examples without it (augmented SBERT: Thakur et al. 2021).

  tools/bench/bench_distillation.py MODEL --data DIR --work DIR [--sentences 2000] [--steps 400] [--seeds 5]

MODEL is the directory of an embedder, such as all-MiniLM-L6-v2; --data is a folder with stsb/train.csv and stsb/dev.csv (two texts and a score).
The cross-encoder is MODEL, trained on the scores of stsb/train.csv. The student is the table of MODEL's token embeddings (fovea convert
--static-vectors), trained on stsb/train.csv; the distilled one, for as many steps, also on other pairs of its sentences, which `fovea embed --mine`
finds and the cross-encoder scores. Prints Spearman's correlations on stsb/dev.csv for each seed, and the mean
difference with its 95% interval by Student's t. Takes about 8 minutes of a CPU core; what is in --work already is not made again."""
import argparse
import array
import csv
import json
import os
import pathlib
import random
import statistics
import subprocess

STUDENT_T = {4: 3.182, 5: 2.776, 8: 2.365, 10: 2.262}  # two-sided, 95%, by the number of seeds
BATCH, CANDIDATES, NEGATIVES = 64, 30, 3


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=pathlib.Path)
    parser.add_argument("--data", type=pathlib.Path, required=True)
    parser.add_argument("--work", type=pathlib.Path, required=True, help="folder for models and files, kept")
    parser.add_argument("--fovea", default=os.environ.get("FOVEA_BIN", "build/release/fovea"))
    parser.add_argument("--sentences", type=int, default=2000)
    parser.add_argument("--steps", type=int, default=400, help=f"of {BATCH} pairs")
    parser.add_argument("--scratch", action="store_true", help="the student's table begins with random numbers")
    parser.add_argument("--seeds", type=int, default=5, choices=sorted(STUDENT_T))
    return parser.parse_args()


def records(rows):
    return "".join(json.dumps({"sentence1": a, "sentence2": b, "score": score}) + "\n" for a, b, score in rows)


def forget(path):
    """Replaces the fp32 numbers of a safetensors file by random ones."""
    content = path.read_bytes()
    begin = 8 + int.from_bytes(content[:8], "little")
    generator = random.Random(0)
    path.write_bytes(content[:begin] + array.array("f", (generator.gauss(0, 0.05) for _ in range((len(content) - begin) // 4))).tobytes())


class Measurement:
    def __init__(self, given):
        self.given, self.work = given, given.work
        self.work.mkdir(parents=True, exist_ok=True)
        self.dev = given.data / "stsb/dev.csv"
        with open(given.data / "stsb/train.csv", encoding="utf-8", newline="") as file:
            self.gold = [(a, b, float(score) / 5) for a, b, score in csv.reader(file)]

    def fovea(self, *words):
        return subprocess.run([self.given.fovea, *map(str, words)], stdout=subprocess.PIPE, check=True, text=True).stdout

    def teacher(self):
        """Trains the cross-encoder, or returns the one of an earlier call."""
        folder, labels = self.work / "teacher", self.work / "teacher.tsv"
        if not (folder / "config.json").exists():
            labels.write_text("".join(f"{a}\t{b}\t{score:.4f}\n" for a, b, score in self.gold), encoding="utf-8")
            self.fovea("train", "--labels", labels, "--from", self.given.model, "--epochs", 1, "--batch", 32, "--learning-rate", "1e-4", "--out", folder)
        return folder

    def silver(self, teacher):
        """Returns other pairs of the sentences of the gold pairs, nearer and farther ones, with the cross-encoder's scores. A sentence is its own
        positive."""
        own, mined, pairs, scores = (self.work / name for name in ("sentences.tsv", "mined.jsonl", "pairs.tsv", "scores.jsonl"))
        if not scores.exists():
            sentences = list(dict.fromkeys(text for a, b, _ in self.gold for text in (a, b) if "\t" not in text and '"' not in text))
            chosen = random.Random(0).sample(sentences, self.given.sentences)
            own.write_text("".join(f"{text}\t{text}\n" for text in chosen), encoding="utf-8")
            self.fovea("embed", self.given.model, "--mine", own, "--negatives", NEGATIVES, "--range-max", CANDIDATES, "--sampling", "random", "--out", mined)
            with open(mined, encoding="utf-8") as rows:
                pairs.write_text("".join(f"{row['anchor']}\t{row[f'negative_{i}']}\n" for row in map(json.loads, rows) for i in range(1, NEGATIVES + 1)),
                                 encoding="utf-8")
            self.fovea("classify", teacher, pairs, "--raw", "--json", "--out", scores)
        with open(scores, encoding="utf-8") as found:
            values = [min(1, max(0, row["labels"][0]["score"])) for row in map(json.loads, found)]
        return [(*line.split("\t"), score) for line, score in zip(pairs.read_text(encoding="utf-8").splitlines(), values, strict=True)]

    def spearman(self, student, name, rows, seed):
        out, data = self.work / f"{name}-{seed}", self.work / f"{name}.jsonl"
        shuffled = random.Random(seed).sample(rows, len(rows))
        data.write_text(records(shuffled[i % len(rows)] for i in range(self.given.steps * BATCH)), encoding="utf-8")
        if not (out / "modules.json").exists():
            self.fovea("embed", student, "--train", data, "--batch", BATCH, "--learning-rate", "1e-3", "--loss", "cosent", "--seed", seed, "--save-every", 0,
                       "--out", out)
        return json.loads(self.fovea("embed", out, "--evaluate", self.dev, "--json"))["spearman"]

    def run(self):
        teacher, student = self.teacher(), self.work / "student"
        if not student.exists():
            self.fovea("convert", self.given.model, student, "--static-vectors")
            if self.given.scratch:
                forget(next(student.rglob("model.safetensors")))
        rows = {"alone": self.gold, "distilled": self.gold + self.silver(teacher)}
        differences = []
        for seed in range(1, self.given.seeds + 1):
            found = {name: self.spearman(student, name, pairs, seed) for name, pairs in rows.items()}
            differences.append(found["distilled"] - found["alone"])
            print(f"seed {seed}: alone {found['alone']:.2f}, distilled {found['distilled']:.2f}", flush=True)
        half = STUDENT_T[len(differences)] * statistics.stdev(differences) / len(differences) ** 0.5
        mean = statistics.mean(differences)
        print(f"difference {mean:.2f} ({mean - half:.2f} to {mean + half:.2f})")


if __name__ == "__main__":
    Measurement(arguments()).run()
