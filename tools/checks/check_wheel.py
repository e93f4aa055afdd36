#!/usr/bin/env python3
"""Checks a wheel: its name, its size, that its module exports its initialisation alone, and that it has its types.

Usage: check_wheel.py WHEEL"""
import pathlib
import re
import subprocess
import sys
import tempfile
import zipfile

MOST_BYTES = 20e6
MODULE, TYPES = "fovea/_fovea.abi3.so", ("fovea/py.typed", "fovea/_fovea/__init__.pyi", "fovea/_options.pyi")


def problems(path):
    if not re.fullmatch(r"fovea_lm-[0-9.]+-cp312-abi3-manylinux_2_34_x86_64[.\w]*\.whl", path.name):
        yield f"the name is {path.name}; expected cp312-abi3-manylinux_2_34_x86_64"
    if path.stat().st_size > MOST_BYTES:
        yield f"{path.stat().st_size} bytes; expected at most {MOST_BYTES:.0f}"
    with zipfile.ZipFile(path) as wheel, tempfile.TemporaryDirectory() as folder:
        names = wheel.namelist()
        for name in (MODULE, *TYPES):
            if name not in names:
                yield f"{name} is missing"
        module = wheel.extract(MODULE, folder)
        listed = subprocess.run(["nm", "-D", "--defined-only", module], check=True, capture_output=True, text=True).stdout
        symbols = [line.split()[-1] for line in listed.splitlines()]
        if symbols != ["PyInit__fovea"]:
            yield f"{MODULE} exports {', '.join(symbols[:5])}; expected PyInit__fovea alone, or torch would use the others"
        licences = {pathlib.Path(name).name for name in names if "/licenses/" in name}
        for name in ("LICENSE", "nanobind", "LGPL-2.1"):
            if name not in licences:
                yield f"licenses/{name} is missing"
        bundled = [name for name in names if re.search(r"lib(stdc\+\+|gcc_s)", name)]
        if bundled:
            yield f"{bundled[0]} is bundled; expected that of the host"


def main():
    path = pathlib.Path(sys.argv[1])
    found = list(problems(path))
    for problem in found:
        print(f"{path.name}: {problem}")
    print(f"check_wheel: {path.name}, {path.stat().st_size / 1e6:.1f} MB, {len(found)} problem{'s' if len(found) != 1 else ''}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
