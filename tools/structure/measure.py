#!/usr/bin/env python3
"""Counts what shows the structure of the code: lines and files of each storey, arrows between folders, public types, options, and loops
over elements above the kernels.

Usage: measure.py [--root DIR] [--program FOVEA]
  --root DIR        the tree to count; default: this one
  --program FOVEA   counts the options of each verb"""
import argparse
import collections
import pathlib
import re
import subprocess

HERE = pathlib.Path(__file__).resolve().parent
SOURCES = (".cc", ".h", ".inc", ".cu", ".cuh")


def files_of(top):
    return sorted(path for path in top.rglob("*") if path.suffix in SOURCES and path.is_file())


def storey_of(path, root):
    parts = path.relative_to(root).parts
    return "/".join(parts[:2]) if parts[0] in ("src", "apps") else parts[0]


def line_counts(root):
    """Returns the lines and the files of each storey, and the number of files under 50 lines."""
    lines, files, small = collections.Counter(), collections.Counter(), 0
    for top in ("include", "src", "contrib", "apps", "python"):
        for path in files_of(root / top):
            length = len(path.read_text(encoding="utf-8").splitlines())
            lines[storey_of(path, root)] += length
            files[storey_of(path, root)] += 1
            small += length < 50
    return lines, files, small


def count_lines(root):
    lines, files, small = line_counts(root)
    print("lines and files:")
    for storey in sorted(lines):
        print(f"  {storey:20} {lines[storey]:7} {files[storey]:5}")
    print(f"  {'sum':20} {sum(lines.values()):7} {sum(files.values()):5}, of which {small} have under 50 lines")


def count_arrows(root):
    """A folder is included by its name; those of a tree in storeys lie one level deeper."""
    tops = [root / "src", *(root / "src").iterdir(), root / "contrib", root / "apps"]
    arrows = set()
    for top in ("src", "contrib", "apps"):
        for path in files_of(root / top):
            for header in re.findall(r'^\s*#\s*include\s*"([^"]+/[^"]+)"', path.read_text(encoding="utf-8"), re.MULTILINE):
                for base in tops:
                    if (base / header).is_file():
                        arrows.add((path.parent.relative_to(root).as_posix(), (base / header).parent.relative_to(root).as_posix()))
    arrows = {(a, b) for a, b in arrows if a != b}
    both = sum((b, a) in arrows for a, b in arrows) // 2
    print(f"arrows between folders: {len(arrows)}; pairs of folders that include each other: {both}")


def count_types(root):
    types = collections.Counter()
    for path in files_of(root / "include"):
        namespace = ""
        for line in path.read_text(encoding="utf-8").splitlines():
            opened = re.match(r"(?:inline )?namespace ([\w:]+) \{", line)
            namespace = opened[1] if opened else namespace
            types[namespace] += bool(re.match(r"(?:struct|class|enum class|enum) (\w+)\b(?!::)[^;(]*\{", line))
    print("public types:", ", ".join(f"{name} {count}" for name, count in types.most_common() if count), f"(sum {sum(types.values())})")


def count_element_loops(root):
    core = [root / "src" / name for name in ("core", "base", "kernels", "parallel", "tensor", "ops")]
    found = sum(len(re.findall(r"data_as<(?:float|int32_t)>", path.read_text(encoding="utf-8")))
                for top in ("src", "contrib") for path in files_of(root / top) if not any(path.is_relative_to(each) for each in core))
    print(f"data_as<float or int32_t> above the core: {found}")


def large_interfaces(root, most=8):
    """Yields the classes with more than `most` virtual functions."""
    for top in ("include", "src", "contrib", "apps"):
        for path in sorted((root / top).rglob("*.h")):
            text = path.read_text(encoding="utf-8")
            for found in re.finditer(r"^(?:class|struct) (\w+)[^;{]*\{.*?^\};", text, re.MULTILINE | re.DOTALL):
                count = len(re.findall(r"\bvirtual\b(?!\s*~)", found[0]))
                if count > most:
                    yield found[1], count


def option_counts(program):
    """Returns the number of options of each verb."""
    verbs = re.findall(r"^  (\w+) ", subprocess.run([program, "--help"], capture_output=True, text=True, check=True).stdout, re.MULTILINE)
    counts = {}
    for verb in dict.fromkeys(verbs):
        shown = subprocess.run([program, verb, "--help-all"], capture_output=True, text=True, check=False).stdout
        counts[verb] = len(re.findall(r"^  (?:-\w, )?(?:--[\w-]+)", shown, re.MULTILINE))
    return counts


def count_options(program):
    counts = option_counts(program)
    print("options:", ", ".join(f"{verb} {count}" for verb, count in sorted(counts.items(), key=lambda each: -each[1])))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", type=pathlib.Path, default=HERE.parent.parent)
    parser.add_argument("--program", type=pathlib.Path)
    options = parser.parse_args()
    root = options.root.resolve()
    count_lines(root)
    count_arrows(root)
    count_types(root)
    count_element_loops(root)
    print("interfaces of more than 8 virtual functions:", dict(large_interfaces(root)))
    if options.program:
        count_options(options.program)


if __name__ == "__main__":
    main()
