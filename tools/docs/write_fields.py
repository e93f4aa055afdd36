#!/usr/bin/env python3
"""Writes request-fields.md: the fields of the server's routes, which `fovea serve --list-fields` prints as JSON. `write_site.py` calls this
script.

Usage: write_fields.py FOLDER. The program is $FOVEA_BIN; default: build/release/fovea."""
import argparse
import json
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
BEGIN = """# Fields of requests

[serve.md](serve.md) describes the routes.
"""


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


def section(route, fields):
    yield f"\n## {route}\n"
    yield "| field | type | default | description |"
    yield "|---|---|---|---|"
    for field in fields:
        default = "required" if field["required"] else field["default"]
        yield f"| `{field['name']}` | {kind(field)} | {default} | {field['help']} |"


def page():
    program = os.environ.get("FOVEA_BIN", str(ROOT / "build/release/fovea"))
    fields = json.loads(subprocess.run([program, "serve", "--list-fields"], stdout=subprocess.PIPE, text=True, check=True).stdout)
    routes = dict.fromkeys(route for field in fields for route in field["of"])
    return BEGIN + "".join(line + "\n" for route in routes for line in section(route, [field for field in fields if route in field["of"]]))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    (parser.parse_args().folder / "request-fields.md").write_text(page(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
