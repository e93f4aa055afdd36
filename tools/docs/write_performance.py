#!/usr/bin/env python3
"""Writes the tables of bench/records.jsonl, which `./run bench --all --record` makes, into docs/performance.md between its markers. With
--check, it writes nothing and exits with 1 if they differ."""
import json
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/performance.md"
MARKED = re.compile(r"(<!-- records -->\n).*?(<!-- end -->)", re.DOTALL)


def cell(figures):
    digits = 0 if figures["median"] >= 100 else 1
    return f"{figures['median']:,.{digits}f} ({figures['least']:,.{digits}f}-{figures['most']:,.{digits}f})"


def others(row):
    """Returns the programs that are not the fastest, with fovea's ratio to each."""
    slower = [(name, figures) for name, figures in row["peers"].items() if name != row["fastest"]]
    return ", ".join(f"{name} {figures['ratio']:.2f}" for name, figures in sorted(slower, key=lambda each: each[1]["ratio"]))


def section(record):
    rates = record["billions_per_second"]
    yield f"### {record['class']}"
    yield ""
    yield (f"{record['cpu']}, {record['threads']} threads, instruction set {record['isa']}, {record['date']}, {record['rounds']} rounds. Measured "
           f"between the rows: products {cell(rates['fp32_flops'])} GFLOP/s in fp32, {cell(rates['bf16_flops'])} in bf16, "
           f"{cell(rates['int8_operations'])} GOP/s in int8; memory {cell(rates['one_thread_bytes_per_second'])} GB/s read by one thread, "
           f"{cell(rates['bytes_per_second'])} by all.")
    yield ""
    yield "| work | unit | fovea | of limit | fastest other program | ratio | ratio to others |"
    yield "|---|---|---|---|---|---|---|"
    for row in record["rows"]:
        fastest = row["fastest"] and row["peers"][row["fastest"]]
        yield (f"| {row['row']} | {row['unit']} | {cell(row['fovea'])} | {row['share']:.0%}, {row['limit']} | "
               + (f"{row['fastest']} {cell(fastest)} | {fastest['ratio']:.2f} | {others(row)} |" if fastest else " | | |"))
    yield ""
    yield f"fovea {record['fovea']}. Other programs:"
    yield ""
    yield from (f"- {name} {each['version']}: {each['flags']}" for name, each in record["versions"].items())


def tables():
    records = [json.loads(line) for line in (ROOT / "bench/records.jsonl").read_text(encoding="utf-8").splitlines()]
    return "\n\n".join("\n".join(section(record)) for record in records) + "\n"


def main():
    page = PAGE.read_text(encoding="utf-8")
    fresh = MARKED.sub(lambda match: match[1] + tables() + match[2], page)
    if "--check" in sys.argv[1:]:
        if fresh != page:
            print(f"{PAGE.relative_to(ROOT)}: differs from bench/records.jsonl; run tools/docs/write_performance.py")
        return int(fresh != page)
    PAGE.write_text(fresh, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
