#!/usr/bin/env python3
"""Writes the table of `fovea serve --list-fields` into docs/serve.md between its markers. With --check, it writes nothing and exits with 1
if they differ.

The program is $FOVEA_BIN; default: build/release/fovea."""
import json
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs/serve.md"
MARKED = re.compile(r"(<!-- fields: (\S+) -->\n).*?(<!-- end -->)", re.DOTALL)


def number(value):
    return str(int(value)) if value == int(value) and abs(value) < 1e15 else f"{value:g}"


def kind(field):
    least, most = number(field["least"]), number(field["most"])
    words = {"boolean": "true or false", "integer": f"integer, {least} to {most}", "number": f"number, {least} to {most}",
             "text": "string", "stops": f"string, or up to {most}", "strings": f"up to {most} strings", "texts": f"string, or up to {most}", "ids": f"up to {most} token ids",
             "prompts": f"string, token ids, or up to {most} of them", "biases": f"object: id to {least} .. {most}",
             "messages": f"{least} to {most} messages", "array": f"array of up to {most}", "object": "object", "automatic_integer": f"auto, or integer, {least} to {most}",
             "automatic_number": f"auto, or number, {least} to {most}", "any": "string or object"}
    return words[field["type"]]


def table(route):
    program = os.environ.get("FOVEA_BIN", str(ROOT / "build/release/fovea"))
    listed = subprocess.run([program, "serve", "--list-fields"], stdout=subprocess.PIPE, text=True, check=True).stdout
    lines = ["| field | type | default | description |", "|---|---|---|---|"]
    for field in json.loads(listed):
        if route in field["of"]:
            default = "required" if field["required"] else field["default"]
            lines.append(f"| `{field['name']}` | {kind(field)} | {default} | {field['help']} |")
    return "\n".join(lines) + "\n"


def main():
    page = PAGE.read_text(encoding="utf-8")
    new = MARKED.sub(lambda match: match[1] + table(match[2]) + match[3], page)
    if "--check" in sys.argv:
        if new != page:
            sys.exit("docs/serve.md: differs from `fovea serve --list-fields`; run tools/write_fields.py")
        return
    PAGE.write_text(new, encoding="utf-8")


if __name__ == "__main__":
    main()
