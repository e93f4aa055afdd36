#!/usr/bin/env python3
"""Writes options.md: the options of all verbs, which `fovea VERB --help-all` prints. `./run docs` calls this script.

Usage: write_options.py [--out FOLDER]; default: docs. The program is $FOVEA_BIN; default: build/release/fovea."""
import argparse
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
BEGIN = """# Options

Written by `./run docs` from `fovea --help` and `fovea VERB --help-all`. [commands.md](commands.md) describes the verbs.
"""


def help_of(*arguments):
    program = os.environ.get("FOVEA_BIN", str(ROOT / "build/release/fovea"))
    environment = dict(os.environ, COLUMNS="100")
    return subprocess.run([program, *arguments], env=environment, stdout=subprocess.PIPE, text=True, check=True).stdout.rstrip()


def page():
    overview = help_of("--help")
    sections = [BEGIN, f"```text\n{overview}\n```\n"]
    for verb in re.findall(r"^  (\w+) +\S", overview, re.MULTILINE):
        sections.append(f"## {verb}\n\n```text\n{help_of(verb, '--help-all')}\n```\n")
    return "\n".join(sections)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "docs")
    path = parser.parse_args().out / "options.md"
    path.write_text(page(), encoding="utf-8")
    print(f"wrote {os.path.relpath(path)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
