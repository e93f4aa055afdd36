#!/usr/bin/env python3
"""Writes tests/goldens/tokenizers.json: small tokenizers of many kinds and the results of Hugging Face tokenizers for some lines.

Needs a Python with `tokenizers`. The kinds and lines are those of tools/compare/compare_tokenizers.py, but fewer; training is deterministic."""
import json
import pathlib
import sys
import tempfile

from harness import GOLDENS, ROOT, report, write_json
from tokenizers import Tokenizer, __version__

sys.path.append(str(ROOT / "tools/compare"))
import compare_tokenizers as compare  # noqa: E402

LINES, LONGEST = 7, 50
TEXT = ["To be, or not to be: that is the question.", "I'll say we've 1234 naïve cafés!", "don't  stop\tnow <s> [both] Thou", "ÅB [MASK] </s> x"]


def golden(name, make):
    tokenizer, trainer = make()
    trainer.vocab_size = 280
    tokenizer.train_from_iterator([line.replace("<s>", "") for line in TEXT] * 3, trainer)
    compare.surround(tokenizer, name)
    with tempfile.TemporaryDirectory() as folder:
        path = str(pathlib.Path(folder) / "tokenizer.json")
        tokenizer.save(path)
        tokenizer = Tokenizer.from_file(path)
        made = json.loads(pathlib.Path(path).read_text())
    lines = TEXT + [line[:LONGEST] for line in compare.lines_of(LINES, sum(map(ord, name)))]
    cases = [compare.expected(tokenizer, line) for line in lines]
    cases += [compare.expected(tokenizer, TEXT[0], TEXT[3]), compare.expected(tokenizer, "", TEXT[2])]
    return {"name": name, "tokenizer": made, "cases": cases}


def main():
    goldens = {"made_with": f"tokenizers {__version__}", "kinds": [golden(name, make) for name, make in compare.KINDS.items()]}
    path = GOLDENS / "tokenizers.json"
    write_json(path, goldens, ensure_ascii=False, separators=(",", ":"))
    report(path)


if __name__ == "__main__":
    main()
