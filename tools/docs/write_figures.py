#!/usr/bin/env python3
"""Writes tables of measured figures into the documents between their markers: the times of experiments from lab/results into docs/lab.md,
and the results of `./run align --record` from lab/records/align.jsonl into docs/align.md. With --check, it writes nothing and exits with 1 if a
document differs."""
import json
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
MARKED = re.compile(r"(<!-- figures: ([a-z]+) -->\n).*?(<!-- end -->)", re.DOTALL)


def duration(seconds):
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"


def times():
    """The experiments by the time of all their runs."""
    yield "| experiment | form | all runs | threads, instruction set |"
    yield "|---|---|---|---|"
    results = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(ROOT.glob("lab/results/*.json"))]
    results = [each for each in results if isinstance(each, dict) and "experiment" in each]
    for each in sorted(results, key=lambda one: -one["seconds"]):
        machine = each["machine"]
        yield (f"| `{each['experiment']}` | {'long' if each['form'] == 'full' else 'short'} | {duration(each['seconds'])} "
               f"| {machine['threads']}, {machine['isa']} |")


def alignment():
    records = [json.loads(line) for line in (ROOT / "lab/records/align.jsonl").read_text(encoding="utf-8").splitlines()]
    yield "| model | wins | ties | length | loss of other chats |"
    yield "|---|---|---|---|---|"
    for name in ("DPO", "PPO", "GRPO"):
        rows = [row for record in records for row in record["models"] if row["model"] == name]
        cells = [", ".join(form.format(row[key]) for row in rows) for key, form in (("wins", "{:.0%}"), ("ties", "{:.0%}"), ("length", "{:.0%}"), ("loss_change", "{:+.1%}"))]
        yield f"| {name} | {' | '.join(cells)} |"
    yield ""
    yield f"{'Seed' if len(records) == 1 else 'Seeds'} {', '.join(str(record['seed']) for record in records)}; {records[0]['processor']}, {records[0]['instruction_sets'].split(';')[0].removeprefix('uses ')}."


TABLES = {"times": times, "alignment": alignment}


def main():
    wrong = 0
    for page in (ROOT / "docs/lab.md", ROOT / "docs/align.md"):
        text = page.read_text(encoding="utf-8")
        fresh = MARKED.sub(lambda match: match[1] + "\n".join(TABLES[match[2]]()) + "\n" + match[3], text)
        if fresh == text:
            continue
        if "--check" in sys.argv[1:]:
            print(f"{page.relative_to(ROOT)}: differs from lab/results or lab/records; run tools/docs/write_figures.py")
            wrong = 1
        else:
            page.write_text(fresh, encoding="utf-8")
    return wrong


if __name__ == "__main__":
    sys.exit(main())
