#!/usr/bin/env python3
"""Counts the places in src/ above the kernels that access elements of tensors in host memory, by folder: through a pointer or a span (these tie code
to host memory), and by functions that wait for the device and copy (HostValues, to_floats, number_of). With --places, lists the former."""
import argparse
import collections
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
DIRECT = re.compile(r"(?:\.|->)(?:template )?(?:data_as|span)<")
COPIED = re.compile(r"\bHostValues<|\bto_floats\(|\bnumber_of\((?!name|\")")


def places(pattern):
    for path in sorted((ROOT / "src").rglob("*")):
        name = path.relative_to(ROOT).as_posix()
        if path.suffix in (".h", ".cc") and not name.startswith(("src/core/kernels/", "src/text/", "src/media/")):
            for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
                if pattern.search(line):
                    yield name, number, line.strip()


def by_folder(found):
    return collections.Counter("/".join(name.split("/")[1:3]) for name, _, _ in found)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--places", action="store_true", help="list the places of direct access")
    arguments = parser.parse_args()
    direct = list(places(DIRECT))
    if arguments.places:
        for name, number, line in direct:
            print(f"{name}:{number}: {line}")
        return 0
    of_direct, of_copied = by_folder(direct), by_folder(places(COPIED))
    for folder in sorted(set(of_direct) | set(of_copied)):
        print(f"{folder:24}{of_direct[folder]:6} direct{of_copied[folder]:6} copied")
    print(f"{'src above the kernels':24}{of_direct.total():6} direct{of_copied.total():6} copied")
    return 0


if __name__ == "__main__":
    sys.exit(main())
