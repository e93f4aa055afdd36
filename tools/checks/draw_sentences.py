#!/usr/bin/env python3
"""Draws random sentences from headers, messages, comments and documents for a review: one "file:line<TAB>sentence" per line.

draw_sentences.py [--seed N] [--count 200] [PREFIX ...]: with prefixes, only from files whose paths begin with one of them."""
import argparse
import random
import sys

import prose


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("prefixes", nargs="*")
    asked = parser.parse_args()
    found = [f"{path}:{line}\t{sentence}" for path, line, text in prose.passages()
             if not asked.prefixes or path.startswith(tuple(asked.prefixes)) for sentence in prose.sentences(text)]
    drawn = random.Random(asked.seed).sample(found, min(asked.count, len(found)))
    print("\n".join(drawn))
    return 0


if __name__ == "__main__":
    sys.exit(main())
