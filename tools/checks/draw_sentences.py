#!/usr/bin/env python3
"""Draws random sentences from headers, messages, comments and documents for a review, or identifiers with a line that has them: one
"file:line<TAB>text" per line.

draw_sentences.py [--seed N] [--count 200] [--identifiers] [PREFIX ...]: with prefixes, only from files whose paths begin with one of
them. Identifiers are those of src, include, apps and contrib, each once."""
import argparse
import random
import re
import sys

import prose

CODE = re.compile(r"//[^\n]*|\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*'|#[^\n]*|\b[A-Za-z_]\w*\b")


def identifiers():
    """Yields (path, line, text) of the first use of each identifier, with its line."""
    known = set()
    for path in prose.files():
        if path.startswith(("src/", "include/", "apps/", "contrib/")) and not path.endswith(".md"):
            for number, line in enumerate((prose.ROOT / path).read_text(encoding="utf-8").split("\n"), 1):
                for found in CODE.finditer(line):
                    name = found[0]
                    if re.match(r"[A-Za-z_]{4}", name) and name not in known:
                        known.add(name)
                        yield path, number, f"{name}    {line.strip()}"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--identifiers", action="store_true")
    parser.add_argument("prefixes", nargs="*")
    options = parser.parse_args()
    passages = identifiers() if options.identifiers else (
        (path, line, sentence) for path, line, text in prose.passages() for sentence in prose.sentences(text))
    found = [f"{path}:{line}\t{text}" for path, line, text in passages
             if not options.prefixes or path.startswith(tuple(options.prefixes))]
    drawn = random.Random(options.seed).sample(found, min(options.count, len(found)))
    print("\n".join(drawn))
    return 0


if __name__ == "__main__":
    sys.exit(main())
