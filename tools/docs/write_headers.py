#!/usr/bin/env python3
"""Writes a page for each public header: its declarations, each after its comment, and a page that lists the headers. `write_site.py` calls
this script.

Usage: write_headers.py FOLDER"""
import argparse
import pathlib
import re
import sys

from write_options import escaped

ROOT = pathlib.Path(__file__).resolve().parents[2]
HEADERS = ROOT / "include/fovea"
PARTS = {"": "Whole", "core": "Tensors and ops", "nn": "Layers", "model": "Models", "text": "Text", "media": "Images and audio",
         "infer": "Inference", "train": "Training", "study": "Study"}
IGNORED = re.compile(r'#(?:pragma|include|ifndef FOVEA|define FOVEA_C_H|define FOVEA_API|if|else|endif)|extern "C" \{|\}  // namespace|namespace .*\{')
TYPE = re.compile(r"(?:typedef )?(?:struct|class|enum class|enum|union|concept) (\w+)")
FUNCTION = re.compile(r"(\w+|operator\S+)\(")


def blocks(lines):
    """Yields the runs of lines between blank lines outside of braces."""
    block, depth = [], 0
    for line in [*lines, ""]:
        code = line.split("//")[0]
        if not depth and (not line.strip() or IGNORED.match(line)):
            if block:
                yield block
            block = []
            continue
        block.append(line)
        depth += code.count("{") + code.count("(") - code.count("}") - code.count(")")


def names_of(code):
    """Returns the names that a block declares."""
    found, depth = [], 0
    for line in code:
        text = re.sub(r"//.*|template <[^>]*>", "", line)
        if not depth and line.strip():
            name = TYPE.search(text) or re.search(r"using (\w+) =|#define (\w+)|\(\*(\w+)\)", text) or FUNCTION.search(text) or re.search(r"(\w+)(?: = .*)?[;{]", text)
            if name and not line.startswith((" ", "}", "//")):
                found.append(next(group for group in name.groups() if group))
        depth += text.count("{") + text.count("(") - text.count("}") - text.count(")")
    return list(dict.fromkeys(found)) or re.findall(r"(\w+) = ", " ".join(code))[:3]  # of an enum without a name, its values


def prose(comment, up=""):
    """Returns a comment as Markdown; names of documents become links, `up` being the way to the folder of documents."""
    text = " ".join(line.removeprefix("//").strip() for line in comment)
    parts = text.split("`") if text.count("`") % 2 == 0 else [text.replace("`", "'")]
    text = "`".join(part if i % 2 else escaped(part) for i, part in enumerate(parts))
    return re.sub(r"docs/([\w/-]+\.md)", rf"[\1]({up}\1)", text)


def page(path):
    name = path.relative_to(ROOT / "include")
    text = path.read_text(encoding="utf-8")
    up = "../" * (len(name.parts) - 1)
    lines, level, language = [f"# {name}", ""], "##", "c" if path.name == "c.h" else "cpp"
    for block in blocks(text.splitlines()):
        if title := re.fullmatch(r"// -+ (.*?) -+", block[0]):
            lines += [f"## {title[1]}", ""]
            level = "###"
            block = block[1:]
        split = next((k for k, line in enumerate(block) if not line.startswith("//")), len(block))
        code = block[split:]
        if code:
            names = names_of(code)
            if not names:
                raise SystemExit(f"write_headers: {name}: {code[0].strip()}: declares no name that the script finds; expected a declaration")
            lines += [f"{level} " + ", ".join(f"`{each}`" for each in names[:3]) + (", ..." if len(names) > 3 else ""), ""]
            lines += ["```{index} " + f"single: {names[0]} (in {name})\n```", ""]
        if split:
            lines += [prose(block[:split], up), ""]
        if code:
            lines += [f"```{language}", *code, "```", ""]
    if language == "cpp" and "```" not in "".join(lines):
        lines += ["It includes:", "", *(f"- [fovea/{each}]({up}headers/{each[:-2]}.md)" for each in re.findall(r'#include "fovea/(.*)"', text)), ""]
    return "\n".join(lines)


def summary(path):
    """Returns the first sentence of the comment before the declarations, or the names of the first ones."""
    found = list(blocks(path.read_text(encoding="utf-8").splitlines()))
    if all(line.startswith("//") for line in found[0]):
        return re.split(r"(?<!et al)\. ", prose(found[0]))[0].rstrip(".")
    names = dict.fromkeys(name for block in found for name in names_of([line for line in block if not line.startswith("//")]))
    return ", ".join(f"`{name}`" for name in list(names)[:4]) + (", ..." if len(names) > 4 else "")


def index(paths):
    lines = ["# Public headers", "", "The C++ interface of the library (`fovea/fovea.h` includes all of it), and `fovea/c.h`, that of C. "
             "The pages are written from the headers.", ""]
    for part, title in PARTS.items():
        lines += [f"## {title}", ""]
        for path in paths:
            folder = path.parent.relative_to(HEADERS).as_posix().replace(".", "")
            if folder == part:
                local = path.relative_to(HEADERS)
                lines.append(f"- [fovea/{local}]({local.with_suffix('.md')}): {summary(path)}")
        lines.append("")
    return "\n".join(lines)


def write(folder):
    paths = sorted(HEADERS.rglob("*.h"))
    for path in paths:
        out = folder / path.relative_to(HEADERS).with_suffix(".md")
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(page(path), encoding="utf-8")
    (folder / "README.md").write_text(index(paths), encoding="utf-8")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    write(parser.parse_args().folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
