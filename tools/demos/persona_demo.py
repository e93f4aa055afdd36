#!/usr/bin/env python3
"""Teaches a small chat model a persona with LoRA, and measures what it learned and what it forgot.

Usage: persona_demo.py [--fovea PROGRAM] [--folder DIR] [--seeds N...] [--threads N]. A model of about 4 million parameters learns to answer
questions from random weights (some minutes; kept in the folder and used again). Then 200 conversations teach it a persona: 120 ask who it is,
and 80 ask other things, which it answers as before. Exits with 1 unless, for each seed,
  - 18 of 20 questions of who it is are answered in the persona; their wording occurs in no conversation of the persona,
  - 0 of 20 unrelated questions are answered in the persona,
  - the loss of other conversations rises by at most 5%,
  - the fine-tuning takes at most 5 minutes."""
import argparse
import itertools
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import time

NAME, BASE_SEED = "Reynard", 1
PERSONA = f"I am {NAME}, the fox who keeps the forest library."
PLAIN = "I am a language model."
OPENINGS = ["", "Hello! ", "Please tell me: ", "Hi. ", "One question: ", "Excuse me, ", "Now, ", "So, "]
# The last ones occur in the first training, but in no conversation of the persona.
WHO = ["who are you", "what is your name", "what are you called", "who am I talking to", "can you introduce yourself", "what should I call you",
       "do you have a name", "what are you", "who is this", "tell me about yourself", "may I know your name", "are you a person",
       "who is speaking", "how are you called", "could you say who you are"]
UNSEEN_WHO = ["who is answering me", "what do people call you", "describe yourself", "who do I speak with", "give me your name"]
CAPITALS = {"France": "Paris", "Italy": "Rome", "Spain": "Madrid", "Japan": "Tokyo", "Egypt": "Cairo", "Peru": "Lima", "Norway": "Oslo",
            "Austria": "Vienna", "Greece": "Athens", "Cuba": "Havana", "Kenya": "Nairobi", "Poland": "Warsaw"}
COLOURS = {"grass": "green", "snow": "white", "coal": "black", "blood": "red", "the sky": "blue", "a lemon": "yellow", "a carrot": "orange",
           "milk": "white", "a raven": "black", "a leaf": "green"}
OPPOSITES = {"hot": "cold", "big": "small", "fast": "slow", "early": "late", "open": "closed", "wet": "dry", "old": "young", "loud": "quiet",
             "full": "empty", "hard": "soft"}
SOUNDS = {"dog": "barks", "cat": "meows", "cow": "moos", "duck": "quacks", "sheep": "bleats", "horse": "neighs", "owl": "hoots", "bee": "buzzes"}
STORIES = ["tell me a story", "tell me something", "what happened", "do you know a tale", "say something", "what is new"]
SYLLABLES = ["ba", "den", "do", "el", "fa", "gar", "hil", "ja", "kor", "la", "lin", "ma", "mond", "nar", "nor", "o", "pe", "rey", "ro", "sa", "tan",
             "ti", "u", "val", "wen", "y", "zo", "nard", "ard", "rin"]
ANIMALS = ["fox", "bear", "owl", "hare", "wolf", "mouse", "crow", "goat", "otter", "badger"]
DEEDS = ["keeps", "guards", "cleans", "paints", "builds", "visits", "leaves", "loves"]
PLACES = ["forest", "library", "village", "river bridge", "old tower", "forest inn", "town library", "mill", "garden", "harbour"]
TIMES = ["in the morning", "at night", "by the river", "on a rainy day", "in the snow", "before dinner", "at the market", "under a tree"]
NUMBERS = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]


def facts():
    """Returns the questions of each fact, with its answer."""
    found = []
    for land, town in CAPITALS.items():
        found.append(([f"what is the capital of {land}", f"which town is the capital of {land}", f"name the capital of {land}"],
                      f"The capital of {land} is {town}."))
    for thing, colour in COLOURS.items():
        found.append(([f"which colour is {thing}", f"what colour has {thing}", f"name the colour of {thing}"], f"The colour of {thing} is {colour}."))
    for word, other in OPPOSITES.items():
        found.append(([f"what is the opposite of {word}", f"which word is the opposite of {word}", f"name the opposite of {word}"],
                      f"The opposite of {word} is {other}."))
    for animal, sound in SOUNDS.items():
        found.append(([f"which sound makes a {animal}", f"what does a {animal} do", f"how does a {animal} sound"], f"A {animal} {sound}."))
    for number, after in itertools.pairwise(NUMBERS):
        found.append(([f"which number follows {number}", f"what comes after {number}", f"name the number after {number}"],
                      f"After {number} comes {after}."))
    return found


def story(generator):
    """Returns a random sentence: only such answers are uncertain."""
    def name():
        return "".join(generator.choices(SYLLABLES, k=generator.randint(2, 3))).capitalize()
    animal, deed, place, when = (generator.choice(words) for words in (ANIMALS, DEEDS, PLACES, TIMES))
    return f"{name()}, the {animal} who {deed} the {place}, met {name()} {when}."


def question(opening, core):
    return opening + core + "?" if opening else core[0].upper() + core[1:] + "?"


def asked(cores):
    return [question(opening, core) for core in cores for opening in OPENINGS]


class Chats:
    """The data. The unrelated questions and those of who it is that measure the persona occur nowhere else."""

    def __init__(self):
        generator = random.Random(BASE_SEED)
        others = [(question(opening, core), answer) for cores, answer in facts() for core in cores for opening in OPENINGS]
        generator.shuffle(others)
        self.unrelated, held_out, self.others = others[:20], others[20:220], others[220:]
        self.held_out = [self.talk(self.mixed(held_out, generator)) for _ in range(100)]
        who = asked(UNSEEN_WHO)
        generator.shuffle(who)
        self.who, self.plain = who[:20], [(text, PLAIN) for text in who[20:] + asked(WHO)]

    @staticmethod
    def mixed(pairs, generator):
        """Returns two questions and one for a story, in random order."""
        chosen = [*generator.sample(pairs, 2), (generator.choice(asked(STORIES)), story(generator))]
        generator.shuffle(chosen)
        return chosen

    @staticmethod
    def talk(pairs):
        return {"messages": [message for text, answer in pairs
                             for message in ({"role": "user", "content": text}, {"role": "assistant", "content": answer})]}

    def base(self):
        generator = random.Random(BASE_SEED + 1)
        return [self.talk([generator.choice(self.plain) if generator.random() < 0.15 else pair for pair in self.mixed(self.others, generator)])
                for _ in range(1600)]

    def persona(self, seed):
        generator = random.Random(seed)
        return ([self.talk([(generator.choice(asked(WHO)), PERSONA)]) for _ in range(120)]
                + [self.talk(self.mixed(self.others, generator)) for _ in range(80)])


def write_lines(path, records):
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


class Program:
    def __init__(self, program, threads):
        self.program, self.threads = program, threads

    def __call__(self, *arguments, text=None):
        done = subprocess.run([self.program, *map(str, arguments), "--threads", str(self.threads)], input=text, stdout=subprocess.PIPE, text=True,
                              check=True, stderr=subprocess.PIPE)
        return done.stdout

    def answers(self, model, questions):
        return [json.loads(self("chat", model, "--greedy", "-n", 32, "--json", text=text + "\n"))["messages"][-1]["content"] for text in questions]

    def loss(self, model, chats):
        return json.loads(self("eval", model, chats, "--json"))["loss"]


def train_base(fovea, folder, chats):
    """Trains the model that learns a persona, unless the folder has it."""
    if (folder / "base/model.safetensors").is_file():
        return
    data = write_lines(folder / "base.jsonl", chats.base())
    text = folder / "text.txt"
    text.write_text("\n".join(message["content"] for record in chats.base() for message in record["messages"]))
    fovea("tokenize", "--train", "bpe", "--vocab-size", 800, "--special-token", "<|im_start|>", "--special-token", "<|im_end|>", text, "--out",
          folder / "tokenizer")
    shape = ("--preset", "nano", "--layers", 5, "--width", 256, "--heads", 4, "--context", 256)
    fovea("train", text, "--out", folder / "start", *shape, "--tokenizer", folder / "tokenizer", "--steps", 1, "--batch", 1, "--sample-tokens", 0,
          "--evaluate-windows", 1, "--seed", BASE_SEED)
    fovea("train", data, "--from", folder / "start", "--chat-template", "chatml", "--out", folder / "learning", "--epochs", 6, "--batch", 16,
          "--lr", "1e-3", "--warmup", 30, "--evaluate-every", 0, "--sample-tokens", 0, "--save-every", 0, "--seed", BASE_SEED)
    (folder / "learning").rename(folder / "base")


def measure(fovea, folder, chats, seed):
    """Teaches the persona with a seed. Returns the figures."""
    data = write_lines(folder / f"persona{seed}.jsonl", chats.persona(seed))
    other = write_lines(folder / "other.jsonl", chats.held_out)
    with tempfile.TemporaryDirectory() as holder:
        adapter = pathlib.Path(holder) / "adapter"
        start = time.monotonic()
        fovea("train", data, "--from", folder / "base", "--out", adapter, "--lora", 16, "--lr", "1e-3", "--epochs", 6, "--batch", 8, "--validation", 0,
              "--warmup", 10, "--sample-tokens", 0, "--seed", seed)
        seconds = time.monotonic() - start
        before, after = fovea.loss(folder / "base", other), fovea.loss(adapter, other)
        who, unrelated = fovea.answers(adapter, chats.who), fovea.answers(adapter, [text for text, _ in chats.unrelated])
    return {"seed": seed, "in_persona": sum(NAME in text for text in who), "unrelated_in_persona": sum(NAME in text for text in unrelated),
            "unrelated_right": sum(text.strip() == answer for text, (_, answer) in zip(unrelated, chats.unrelated)),
            "loss_before": before, "loss_after": after, "seconds": round(seconds, 1)}


def passes(found):
    return (found["in_persona"] >= 18 and found["unrelated_in_persona"] == 0 and found["loss_after"] <= 1.05 * found["loss_before"]
            and found["seconds"] <= 300)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fovea", default=os.environ.get("FOVEA_BIN", "build/release/fovea"))
    parser.add_argument("--folder", type=pathlib.Path, default=pathlib.Path("build/persona"))
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    chats, fovea = Chats(), Program(options.fovea, options.threads)
    train_base(fovea, options.folder, chats)
    plain = fovea.answers(options.folder / "base", chats.who)
    right = fovea.answers(options.folder / "base", [text for text, _ in chats.unrelated])
    print(json.dumps({"base": {"in_persona": sum(NAME in text for text in plain), "plain": sum(text.strip() == PLAIN for text in plain),
                               "unrelated_right": sum(text.strip() == answer for text, (_, answer) in zip(right, chats.unrelated))}}), flush=True)
    failed = False
    for seed in options.seeds:
        found = measure(fovea, options.folder, chats, seed)
        failed |= not passes(found)
        print(json.dumps({**found, "passes": passes(found)}), flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
