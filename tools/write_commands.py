#!/usr/bin/env python3
"""Writes `fovea VERB --help-all` into docs/commands.md between its markers. With --check, it writes nothing and exits with 1 if they
differ.

The program is $FOVEA_BIN; default: build/release/fovea."""
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs/commands.md"
MARKED = re.compile(r"(<!-- help: fovea ?(\w*) -->\n).*?(<!-- end -->)", re.DOTALL)


def help_of(*verb):
    program = os.environ.get("FOVEA_BIN", str(ROOT / "build/release/fovea"))
    environment = dict(os.environ, COLUMNS="100")
    return subprocess.run([program, *verb, "--help-all" if verb else "--help"], env=environment, stdout=subprocess.PIPE, text=True, check=True).stdout


def verbs():
    return re.findall(r"^  (\w+) +\S", help_of(), re.MULTILINE)


def main():
    page = PAGE.read_text(encoding="utf-8")
    described = {match[1] for match in MARKED.findall(page)}
    missing = [verb for verb in verbs() if verb not in described]
    if missing:
        print(f"{PAGE.relative_to(ROOT)}: has no section for {', '.join(missing)}; expected one with markers")
        return 1
    fresh = MARKED.sub(lambda m: f"{m[1]}```text\n{help_of(*filter(None, [m[2]])).rstrip()}\n```\n{m[3]}", page)
    if "--check" in sys.argv[1:]:
        if fresh != page:
            print(f"{PAGE.relative_to(ROOT)}: differs from --help-all; run tools/write_commands.py")
        return int(fresh != page)
    PAGE.write_text(fresh, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
