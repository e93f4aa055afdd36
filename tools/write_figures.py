#!/usr/bin/env python3
"""Writes tables of measured figures into the documents between their markers: the times of experiments from lab/results into docs/lab.md. With --check, it writes nothing and exits with 1 if a
document differs."""
import json
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
MARKED = re.compile(r"(<!-- figures: ([a-z]+) -->\n).*?(<!-- end -->)", re.DOTALL)


def objects(pattern):
    found = (json.loads(path.read_text(encoding="utf-8")) for path in sorted(ROOT.glob(pattern)))
    return [each for each in found if isinstance(each, dict)]


def duration(seconds):
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"


def times():
    """The experiments by the time of all their runs."""
    yield "| experiment | form | all runs | threads, instruction set |"
    yield "|---|---|---|---|"
    results = [each for each in objects("lab/results/*.json") if "experiment" in each]
    for each in sorted(results, key=lambda one: -one["seconds"]):
        machine = each["machine"]
        yield (f"| `{each['experiment']}` | {'long' if each['form'] == 'full' else 'short'} | {duration(each['seconds'])} "
               f"| {machine['threads']}, {machine['isa']} |")


TABLES = {"times": times}


def main():
    wrong = 0
    for page in (ROOT / "docs/lab.md",):
        text = page.read_text(encoding="utf-8")
        fresh = MARKED.sub(lambda match: match[1] + "\n".join(TABLES[match[2]]()) + "\n" + match[3], text)
        if fresh == text:
            continue
        if "--check" in sys.argv[1:]:
            print(f"{page.relative_to(ROOT)}: differs from lab/results; run tools/write_figures.py")
            wrong = 1
        else:
            page.write_text(fresh, encoding="utf-8")
    return wrong


if __name__ == "__main__":
    sys.exit(main())
