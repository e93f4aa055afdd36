"""Writes the text on which the small model of `fovea learn` is trained: sentences made from word lists.

    python3 tools/data/write_course_text.py > course.txt
    python3 tools/data/write_course_text.py --words > words.txt

    python3 tools/data/write_course_text.py --tokens tokenizer.json > tokens.txt

With --tokens, most repeated lists are of random tokens of this vocabulary, so that the model also copies tokens that never follow
one another. With --words, each punctuation mark has its own line: a tokenizer that is trained on this text never joins it to a word.

The words and patterns are those that the course looks at: pronouns and what they refer to, subjects and verbs with a noun
between them, names that are repeated, words with two meanings, and lists that are repeated once, which teach a model to copy.
All text is made by this script, so that it may be used for anything. The same seed writes the same text.
"""

import json
import random
import re
import sys

SEED = 7
LINES = 60000
ANIMALS = "animal dog cat horse cow fox bear mouse".split()
PEOPLE = {"he": "John Tom Peter Max Paul Ben".split(), "she": "Mary Anna Lucy Emma Clara Ruth".split()}
ROLES = "man woman teacher doctor king queen farmer child".split()
PLACES = "street river bridge field garden road hill square".split()
SHOPS = "store market school park station house".split()
THINGS = "book apple letter coin hat ring cup key".split()
TIRED = "tired afraid hungry old weak sick".split()
WIDE = "wide long dark cold steep busy".split()
ADJECTIVES = "red small old quiet green happy tall new".split()
VERBS = {"sees": "see", "likes": "like", "finds": "find", "knows": "know", "has": "have", "wants": "want"}
RANDOM = (ANIMALS + ROLES + PLACES + SHOPS + THINGS + TIRED + WIDE + ADJECTIVES
          + [name for names in PEOPLE.values() for name in names])


def plural(noun):
    return {"man": "men", "woman": "women", "child": "children", "mouse": "mice"}.get(
        noun, noun + ("es" if noun.endswith(("x", "s")) else "s"))


def pronoun(pick):
    animal, place = pick(ANIMALS), pick(PLACES)
    verb = pick(["cross", "leave", "like"])
    # Each animal and each place has its own two reasons: the word after "too" depends on what "it" stands for.
    one, all_ = (animal, TIRED) if pick([True, False]) else (place, WIDE)
    at = (ANIMALS if all_ is TIRED else PLACES).index(one)
    reason = pick([all_[at % len(all_)], all_[(at + 1) % len(all_)]])
    return f"The {animal} didn't {verb} the {place} because it was too {reason}."


def person(pick):
    word = pick(sorted(PEOPLE))
    name, place = pick(PEOPLE[word]), pick(SHOPS)
    return f"{name} went to the {place} because {word} wanted a {pick(THINGS)}."


def gift(pick):
    one, other = pick(PEOPLE["he"]), pick(PEOPLE["she"])
    if pick([True, False]):
        one, other = other, one
    giver, taker = (one, other) if pick([True, False]) else (other, one)
    return f"When {one} and {other} went to the {pick(SHOPS)}, {giver} gave a {pick(THINGS)} to {taker}."


def agreement(pick):
    verb = pick(sorted(VERBS))
    subject, other = pick(ROLES + ANIMALS), pick(ROLES + ANIMALS)
    if pick([True, False]):
        return f"The {subject} near the {plural(other)} {verb} a {pick(ADJECTIVES)} {pick(THINGS)}."
    return f"The {plural(subject)} near the {other} {VERBS[verb]} a {pick(ADJECTIVES)} {pick(THINGS)}."


def bank(pick):
    if pick([True, False]):
        return pick([f"The {pick(ANIMALS)} sat on the bank of the river.",
                     f"The boat lay at the bank near the river and the {pick(ANIMALS)} swam."])
    return pick([f"The {pick(ROLES)} went to the bank for a loan.",
                 f"The bank gave the {pick(ROLES)} a loan and some money."])


def repeated(pick):
    """A list that is repeated once, of words or of parts of words, so that every token of the vocabulary is repeated."""
    count = pick(range(4, 28))
    if pick([True, False]):
        words = [pick(RANDOM) for _ in range(count)]
    else:
        words = [part(pick, pick(RANDOM)) for _ in range(count)]
    return " ".join(words + words) + "."


def part(pick, word):
    begin = pick(range(len(word)))
    return word[begin:begin + pick(range(1, 6))]


def glued(pick, tokens):
    """Like repeated(), but of random tokens, which end where the next one begins."""
    return "".join(pick(tokens) for _ in range(pick(range(16, 52)))) * 2


def line(random_, tokens):
    pick = lambda all_: random_.choice(list(all_))  # noqa: E731
    kinds = [pronoun, person, gift, agreement, bank, repeated, repeated, repeated]
    if tokens:
        kinds += [lambda pick_: glued(pick_, tokens)] * 10
    return pick(kinds)(pick)


def vocabulary(path):
    """The texts of the tokens that are no special tokens."""
    with open(path, encoding="utf-8") as file:
        tokens = json.load(file)["model"]["vocab"]
    return [token.replace("\u2581", " ") for token in sorted(tokens) if not token.startswith("<")]


def main():
    random_ = random.Random(SEED)
    words = sys.argv[1:] == ["--words"]
    tokens = vocabulary(sys.argv[2]) if sys.argv[1:2] == ["--tokens"] else []
    for _ in range(LINES):
        text = line(random_, tokens)
        sys.stdout.write((re.sub(r"([.,'])", r"\n\1\n", text) if words else text) + "\n")


if __name__ == "__main__":
    main()
