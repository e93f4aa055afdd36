#!/usr/bin/env python3
"""Checks that each public C++ function has a Python name: the same one in python/, or a line in python/names.txt with another name or the
reason why it has none. Prints violations; exits with 1 if there are any.

With --list: prints the functions of each header."""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
TABLE = ROOT / "python/names.txt"
EXCEPT = ("include/fovea/c.h", "include/fovea/bench.h")  # bench.h: python -m fovea bench
NOT_FUNCTIONS = {"if", "for", "while", "switch", "return", "sizeof", "decltype", "requires", "noexcept", "static_assert", "operator", "function", "alignas", "catch",
                 "defined", "visit", "begin", "end", "push_back", "reserve", "append", "name_of"}  # the latter: of containers, enums and descriptions


def code_of(path):
    """The text without comments, strings, initialisers and bodies of functions."""
    text = re.sub(r"//[^\n]*|\"(?:\\.|[^\"\\])*\"|^\s*#[^\n]*", " ", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    text = re.sub(r"std::function<[^;{}]*?>(?=\s|&|\))", "Function ", text)
    out, depth, skipped = [], 0, None
    for i, c in enumerate(text):
        if c == "{":
            depth += 1
            before = "".join(out).rstrip()[-200:]
            opens = re.search(r"(namespace[\w\s:]*|(struct|class)\s+[\w:]+(\s+final)?(\s*:[^;{}()]*)?)$", before)
            if skipped is None and not opens:
                skipped = depth
        if skipped is None:
            out.append(c)
        if c == "}":
            if skipped == depth:
                skipped = None
                out.append(";")
            depth -= 1
    return "".join(out)


def functions(path):
    """Yields the names of functions and public methods that are declared in a header."""
    code = code_of(path)
    code = re.sub(r"\bprivate:.*?(?=\n\};)", "", code, flags=re.DOTALL)
    classes = set(re.findall(r"\b(?:struct|class)\s+(\w+)", code))
    for match in re.finditer(r"(?<=[;{}:>\n])\s*[\w:<>,&*\s\[\]]*?[\w>&*]\s+[&*]*(\w+)\s*\(", code):
        name = match[1]
        if name in NOT_FUNCTIONS or name in classes or name[0].isupper() or re.match(r"\s*(using|friend|return|else|throw)\b", match[0]):
            continue
        yield name


def python_names():
    text = "\n".join(path.read_text(encoding="utf-8") for folder in ("src", "fovea") for path in sorted((ROOT / "python" / folder).iterdir())
                     if path.suffix in (".cc", ".py"))
    quoted = re.findall(r"\.def\w*\(\s*\"(\w+)\"|\.attr\(\"(\w+)\"\)|nb::class_<[^\"]*\"(\w+)\"", text)
    return {name for names in quoted for name in names if name} | set(re.findall(r"\b(?:def|class)\s+(\w+)", text))


def table():
    """Returns {C++ name: (Python name or None, line)}."""
    entries = {}
    for number, line in enumerate(TABLE.read_text(encoding="utf-8").splitlines(), 1):
        if line and not line.startswith("#"):
            name, sign, rest = re.match(r"(\w+)\s+(->|none:)\s+(.+)", line).groups()
            entries[name] = (rest if sign == "->" else None, number)
    return entries


def main():
    found = {}
    for path in sorted((ROOT / "include/fovea").rglob("*.h")):
        header = path.relative_to(ROOT).as_posix()
        if header not in EXCEPT:
            for name in functions(path):
                found.setdefault(name, header)
    if "--list" in sys.argv:
        print("\n".join(f"{header} {name}" for name, header in found.items()))
        return 0
    known, entries = python_names(), table()
    problems = [f"{header}: {name} has no Python name; expected one, or a line in {TABLE.relative_to(ROOT)}" for name, header in found.items()
                if name not in known and name not in entries]
    for name, (other, number) in entries.items():
        if name not in found:
            problems.append(f"{TABLE.relative_to(ROOT)}:{number}: {name} is no public function")
        if other is not None:
            problems += [f"{TABLE.relative_to(ROOT)}:{number}: {part} is no Python name" for part in re.findall(r"\w+(?=\()|(?<=\.)\w+$", other) if part not in known]
    for problem in problems:
        print(problem)
    print(f"check_python_names: {len(problems)} problem{'s' if len(problems) != 1 else ''}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
