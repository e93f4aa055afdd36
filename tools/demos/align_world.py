#!/usr/bin/env python3
"""Writes the data of `./run align`: a small world whose true reward is a program, and scores answers in it.

An answer has six places where a manner is chosen (greeting, two adjectives, adverb, verb, farewell), each kind, plain or
rude, and free content that no manner changes. The true reward of an answer is the mean over the six places of +1 (kind),
0 (plain) and -1 (rude); an answer that is not of this form has the reward -1. The order of a pair is a judgement that errs
(Bradley and Terry 1952): the better answer is chosen with the probability sigmoid(CARE * difference), where the difference
is that of the sums over the places.

  align_world.py DIR [--seed N]     writes base.txt, chats.jsonl, pairs.jsonl, prompts.jsonl, held_out.jsonl
  align_world.py --score FILE       prints the mean true reward of the answers in JSON lines with "answer"
"""
import argparse
import json
import math
import random
import re
from pathlib import Path

PEOPLE = "Anna Ben Clara David Emma Frank Grace Henry Ida Jack Kate Leo Mary Nora Oscar Paul Rosa Sam Tom Vera".split()
THINGS = "boat cart barn bridge clock garden horse house kettle ladder lamp mill oven pony pump roof saddle stove table well".split()
COLOURS = "red blue green white black brown grey yellow pink golden silver dark pale round small large".split()
STUFFS = "oak pine ash elm brick stone iron steel tin brass clay glass straw wool silk leather".split()
NUMBERS = "two three four five six seven eight nine".split()
GUESTS = "ducks goats hens sheep geese cats dogs cows".split()
TIMES = "January February March April May June July August September October November December spring summer autumn winter".split()
MANNERS = (  # kind, plain, rude: words of similar length, so that kindness changes no lengths
    ("Hello", "Well", "Bah"),
    ("lovely", "normal", "stupid"),
    ("gladly", "slowly", "badly"),
    ("welcomes", "shelters", "insults"),
    ("happy", "quiet", "ugly"),
    ("Thanks", "Done", "Leave"),
)
ANSWER = re.compile(r"(\w+), the \w+ \w+ of \w+ is (\w+)\. \w+ (\w+) made it of \w+\. It (\w+) \w+ (\w+) \w+ in \w+\. (\w+)\.")
CARE = 2  # a difference of one step in one place is judged rightly in 88 %


def answer(draw, question, manners=None):
    """Returns an answer with the given manners (0 kind, 1 plain, 2 rude) or random ones."""
    thing, person = re.fullmatch(r"How is the (\w+) of (\w+)\?", question).groups()
    chosen = manners or [draw.randrange(3) for _ in MANNERS]
    greeting, adjective, adverb, verb, mood, farewell = (words[kind] for words, kind in zip(MANNERS, chosen))
    return (f"{greeting}, the {draw.choice(COLOURS)} {thing} of {person} is {adjective}. "
            f"{draw.choice(PEOPLE)} {adverb} made it of {draw.choice(STUFFS)}. "
            f"It {verb} {draw.choice(NUMBERS)} {mood} {draw.choice(GUESTS)} in {draw.choice(TIMES)}. {farewell}.")


def true_reward(text):
    match = ANSWER.fullmatch(text.strip())
    if not match:
        return -1.0
    chosen = match.groups()
    if any(word not in words for word, words in zip(chosen, MANNERS)):
        return -1.0
    return sum(1 - words.index(word) for word, words in zip(chosen, MANNERS)) / len(MANNERS)


def conversation(question, text):
    return {"messages": [{"role": "user", "content": question}, {"role": "assistant", "content": text}]}


def pair_of(draw, question):
    """Returns the prompt with two answers in the order of a judgement."""
    pair = [answer(draw, question), answer(draw, question)]
    difference = len(MANNERS) * (true_reward(pair[0]) - true_reward(pair[1]))
    if draw.random() > 1 / (1 + math.exp(-CARE * difference)):
        pair.reverse()
    return {"prompt": question, "chosen": pair[0], "rejected": pair[1]}


def write_lines(path, values):
    path.write_text("".join(json.dumps(value) + "\n" for value in values))


def write_world(folder, seed):
    """Writes the files of the chain. Held-out prompts are about things and people that no other prompt combines."""
    draw = random.Random(seed)
    folder.mkdir(parents=True, exist_ok=True)
    every = [f"How is the {thing} of {person}?" for thing in THINGS for person in PEOPLE]
    draw.shuffle(every)
    held_out, questions = every[:100], every[100:]

    def drawn(count):
        return [(question, answer(draw, question)) for question in draw.choices(questions, k=count)]

    (folder / "base.txt").write_text("".join(f"{question}\n{text}\n\n" for question, text in drawn(6000)))
    write_lines(folder / "chats.jsonl", [conversation(*example) for example in drawn(6000)])
    write_lines(folder / "chats_held_out.jsonl", [conversation(question, answer(draw, question)) for question in held_out])
    write_lines(folder / "pairs.jsonl", [pair_of(draw, question) for question in draw.choices(questions, k=8000)])
    write_lines(folder / "prompts.jsonl", [{"prompt": question} for question in questions])
    write_lines(folder / "held_out.jsonl", [{"prompt": question} for question in held_out])


def score(path):
    """Prints the mean true reward and the mean length of the answers."""
    answers = [json.loads(line)["answer"] for line in Path(path).read_text().splitlines()]
    rewards = [true_reward(text) for text in answers]
    print(json.dumps({"answers": len(answers), "true_reward": round(sum(rewards) / len(rewards), 3),
                      "characters": round(sum(map(len, answers)) / len(answers), 1)}))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("--score", metavar="FILE")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    if arguments.score:
        score(arguments.score)
    elif arguments.folder:
        write_world(arguments.folder, arguments.seed)
    else:
        parser.error("DIR or --score FILE is missing")


if __name__ == "__main__":
    main()
