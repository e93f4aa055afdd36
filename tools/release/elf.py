#!/usr/bin/env python3
"""elf.py FOLDER: checks that all programs and libraries in a folder run on any system of the policy manylinux_2_34.

Each symbol that a file takes from glibc or from the libraries of g++ has at most the policy's version, each needed library is in the
folder or belongs to the policy, and no run path leads out of the folder. Prints one line for each problem, and exits with 1 if there is
any."""
import os
import pathlib
import re
import subprocess
import sys

# The policy of auditwheel: the symbols of RHEL 9, Debian 12 and Ubuntu 22.04, and the libraries that each Linux system has. Of its
# libraries, these are the ones that fovea needs.
NEWEST = {"GLIBC": (2, 34), "GLIBCXX": (3, 4, 29), "CXXABI": (1, 3, 13), "GCC": (7, 0, 0)}
SYSTEM = {"libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "librt.so.1", "libstdc++.so.6", "libgcc_s.so.1", "ld-linux-x86-64.so.2",
          "ld-linux-aarch64.so.1"}
# A module may need a library of the system, since the program says so if it cannot load the module.
MODULE = re.compile(r"fovea_\w+\.so")


def is_elf(path):
    if path.is_symlink() or not path.is_file():
        return False
    with open(path, "rb") as file:
        return file.read(4) == b"\x7fELF"


def readelf(option, path):
    # -W prevents line breaks within an entry.
    return subprocess.run(["readelf", "-W", option, path], stdout=subprocess.PIPE, text=True, check=True, env={**os.environ, "LC_ALL": "C"}).stdout


def needed(path):
    return re.findall(r"\(NEEDED\).*\[(.*)\]", readelf("-d", path))


def run_paths(path):
    return re.findall(r"\((?:RPATH|RUNPATH)\).*\[(.*)\]", readelf("-d", path))


def versions(path):
    """Returns {name: highest version} of the symbols that a file needs, such as {"GLIBC": (2, 34)}."""
    highest = {}
    # The table of needed versions; that of defined versions comes before it.
    table = readelf("-V", path).rpartition("Version needs section")
    for name, version in re.findall(r"Name: ([A-Z]+)_([0-9.]+)\b", table[2] if table[1] else ""):
        number = tuple(int(part) for part in version.split("."))
        highest[name] = max(highest.get(name, ()), number)
    return highest


def problems(folder):
    files = sorted(path for path in pathlib.Path(folder).rglob("*") if is_elf(path))
    names = {path.name for path in files}
    for path in files:
        shown = path.relative_to(folder)
        for name, version in sorted(versions(path).items()):
            if name in NEWEST and version > NEWEST[name]:
                yield f"{shown}: needs {name}_{'.'.join(map(str, version))}; expected at most {'.'.join(map(str, NEWEST[name]))}"
        for name in needed(path):
            if name not in names | SYSTEM and not MODULE.fullmatch(path.name):
                yield f"{shown}: needs {name}, which the folder lacks; expected a library of the folder or of the policy"
        for run_path in run_paths(path):
            inside = re.fullmatch(r"\$ORIGIN(/[^:]*)?", run_path)
            target = os.path.normpath(shown.parent / ("." + (inside[1] or ""))) if inside else ".."
            if target.split("/")[0] == "..":
                yield f"{shown}: has the run path {run_path}; expected one inside of the folder, such as $ORIGIN/../lib"


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    found = list(problems(pathlib.Path(sys.argv[1])))
    for problem in found:
        print(f"elf: {problem}", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
