#!/usr/bin/env python3
"""Begins a family of checkpoints: a file in src/model/families like that of a known family, its two lines in the registry, and a tiny
checkpoint for its test.

Usage: new_family.py NAME --like FAMILY [--stem STEM]

NAME is the model_type; STEM begins the names of its classes in transformers (default: NAME in capitals: olmo_next -> OlmoNext). Then edit the file
as docs/add-a-family.md describes, and run tools/goldens/make_checkpoints.py NAME, whose results tests/parity/families_test.cc compares."""
import argparse
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
FAMILIES = ROOT / "src/model/families"
CHECKPOINTS = ROOT / "tools/goldens/make_checkpoints.py"


def refuse(message):
    sys.exit(f"new_family: {message}")


def definitions(text):
    """The identifiers and model types of the families of a file."""
    return re.findall(r'^const Family (\w+) = \{\s*"([^"]+)"', text, re.M)


def source_of(like):
    """The text of the file of a family, and its identifier there."""
    alone = []
    for path in sorted(FAMILIES.glob("*.cc")):
        text = path.read_text(encoding="utf-8")
        found = definitions(text)
        if len(found) == 1:
            alone.append(found[0][1])
        for identifier, model_type in found:
            if model_type == like and len(found) == 1:
                return text, identifier
            if model_type == like:
                refuse(f"{like}: shares {path.name} with other families; expected one with a file of its own: {', '.join(sorted(alone))}, ...")
    refuse(f"{like}: is no family; expected one with a file of its own, such as {', '.join(alone)}")


def like_file(text, identifier, like, name, stem):
    """The file of the new family: what only the known one uses, under new names."""
    own = "\n".join(re.findall(r"^namespace \{\n(.*?)^\}  // namespace$", text, re.M | re.S))
    family = re.search(rf"^const Family {identifier} = \{{.*?\}};", text, re.M | re.S).group()
    new = re.sub(r"\W", "_", name)
    for word in set(re.findall(rf"^\w[\w:<> ]*\b({identifier}_\w+)(?= ?[=(])", own, re.M)):
        renamed = new + word.removeprefix(identifier)
        own, family = (re.sub(rf"\b{word}\b", renamed, part) for part in (own, family))
    known_stem = re.search(r'"(\w+?)(?:For\w+|Model|LMHeadModel)"', family + own).group(1)
    own, family = (part.replace(f'"{known_stem}', f'"{stem}') for part in (own, family))
    family = family.replace(f"Family {identifier} ", f"Family {new} ").replace(f'"{like}"', f'"{name}"', 1)
    own = re.sub(rf"(?:^//.*\n)+(?=void {new}_config\()", f"// {stem} (authors, year): {like} with ...\n", own, flags=re.M)
    includes = "".join(line + "\n" for line in text.splitlines() if line.startswith("#include"))
    return f"{includes}\nnamespace fovea::model {{\nnamespace {{\n{own}}}  // namespace\n\n{family}\n\n}}  // namespace fovea::model\n"


def insert_after(path, pattern, line):
    text = path.read_text(encoding="utf-8")
    changed, count = re.subn(pattern, lambda found: found.group() + "\n" + line, text, count=1, flags=re.M)
    if count != 1:
        refuse(f"{path.relative_to(ROOT)}: has no line {pattern}")
    path.write_text(changed, encoding="utf-8")


def main():
    parser = argparse.ArgumentParser(prog="new_family.py", description=__doc__.split("\n", 1)[0])
    parser.add_argument("name")
    parser.add_argument("--like", required=True)
    parser.add_argument("--stem")
    given = parser.parse_args()
    name, like = given.name, given.like
    stem = given.stem or "".join(part.capitalize() for part in re.split(r"\W|_", name))
    if not re.fullmatch(r"[a-z][a-z0-9_-]*", name):
        refuse(f"{name}: expected a model_type of small letters, digits, _ and -")
    new = re.sub(r"\W", "_", name)
    path = FAMILIES / f"{new}.cc"
    if path.exists() or any(name == known for each in FAMILIES.glob("*.cc") for _, known in definitions(each.read_text(encoding="utf-8"))):
        refuse(f"{name}: is a family already; expected a new one")
    text, identifier = source_of(like)
    path.write_text(like_file(text, identifier, like, name, stem), encoding="utf-8")
    insert_after(FAMILIES / "registry.h", rf"^extern const Family {identifier};$", f"extern const Family {new};")
    indent = re.search(rf"^( *)(?:static .*= \{{)?&{identifier},$", (FAMILIES / "registry.cc").read_text(encoding="utf-8"), re.M)
    insert_after(FAMILIES / "registry.cc", rf"&{identifier},$", f"{indent.group(1) if indent else ''}&{new},")
    encoder = "ForMaskedLM" in path.read_text(encoding="utf-8")
    seeds = [int(seed) for seed in re.findall(r"\}, (1\d{3})\),?$", CHECKPOINTS.read_text(encoding="utf-8"), re.M)]
    entry = f'"{new}": ("{stem}For{"MaskedLM" if encoder else "CausalLM"}", {{{"**ENCODER, **WITHOUT_DROPOUT" if encoder else "**DECODER"}}}, {max(seeds) + 1}),'
    insert_after(CHECKPOINTS, r"^OTHERS = \{$", "    " + entry)
    if formatter := shutil.which("clang-format-19") or shutil.which("clang-format"):
        subprocess.run([formatter, "-i", path], check=False)
    for changed in (path, FAMILIES / "registry.h", FAMILIES / "registry.cc", CHECKPOINTS):
        print(changed.relative_to(ROOT))


if __name__ == "__main__":
    main()
