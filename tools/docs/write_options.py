#!/usr/bin/env python3
"""Writes a page for each verb: the text of docs/commands/VERB.md, and its options, which `fovea VERB --help-all` prints. `write_site.py`
calls this script.

Usage: write_options.py FOLDER. The program is $FOVEA_BIN; default: build/release/fovea."""
import argparse
import json
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = os.environ.get("FOVEA_BIN", str(ROOT / "build/release/fovea"))
SPECIAL = re.compile(r"([\\`*_<>\[\]#|~^{}$@])")


def output_of(*arguments):
    # A line of the help is never wrapped within its names.
    return subprocess.run([PROGRAM, *arguments], env={**os.environ, "COLUMNS": "100"}, stdout=subprocess.PIPE, text=True, check=True).stdout


def escaped(text):
    """Returns Markdown that shows the text as it is."""
    return SPECIAL.sub(r"\\\1", text)


def sections_of(verb):
    """Yields the sections of a verb's help: (title, [names and arguments of an option])."""
    title, found = "", []
    for line in output_of(verb, "--help-all").splitlines():
        if re.fullmatch(r"\S.*:", line) and not line.startswith("usage:"):
            if found:
                yield title, found
            title, found = line[:-1], []
        elif entry := re.match(r"  (\S+(?: \S+)*)", line):
            found.append(entry[1])
    yield title, found


def directive(signature, option):
    """Returns the lines that describe an option; names make the anchors and the index."""
    aliases = [alias for alias in option["aliases"] if alias not in signature.split(", ")]
    values = [] if option["expected"] in ("text", "one", "no value", "true or false") else [f"values: {option['expected']}"]
    if option["default"] not in ("", "false"):
        values.append(f"default: {option['default']}")
    return ["```{option} " + ", ".join([signature, *(alias for alias in aliases if alias.startswith("-"))]),
            escaped(option["help"]) + (f"  ({escaped('; '.join(values))})" if values else ""), "```", ""]


def page(verb, options):
    described = ROOT / f"docs/commands/{verb}.md"
    if not described.exists():
        raise SystemExit(f"write_options: docs/commands/{verb}.md: is missing; expected a page for each verb")
    help_text = output_of(verb, "--help-all")
    usage = help_text.split("\n\n")[0]
    lines = [described.read_text(encoding="utf-8").rstrip(), "", "## Usage", "", f"```text\n{usage}\n```", "",
             escaped(" ".join(help_text.split("\n\n")[1].split())), "", "```{program} fovea " + verb + "\n```", ""]
    by_name = {option["name"]: option for option in options}
    for title, signatures in sections_of(verb):
        lines += [f"## {title}" if title else "## Options", ""]
        for signature in signatures:
            names = [part.split(" ")[0].split("[")[0].removesuffix("...") for part in signature.split(", ")]
            option = next((by_name[name] for name in names if name in by_name), None)
            if option is None:
                raise SystemExit(f"write_options: {verb}: {signature}: not in the output of --list-options; expected one of its names")
            lines += directive(signature, option)
    return "\n".join(lines)


def write(folder):
    for verb, options in json.loads(output_of("--list-options")).items():
        (folder / f"{verb}.md").write_text(page(verb, options), encoding="utf-8")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    write(parser.parse_args().folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
