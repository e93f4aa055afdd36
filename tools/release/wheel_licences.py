#!/usr/bin/env python3
"""wheel_licences.py WHEEL: adds the terms of fovea and of the libraries that a repaired wheel contains to its folder of metadata.

The wheel has the libraries of this system under names with a hash (libsndfile-3441ea8e.so.1.0.35), and libraries of headers in its
module."""
import importlib.metadata
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import archive


def libraries_of(unpacked):
    """Returns the paths on this system of the libraries in a wheel."""
    for copied in sorted(unpacked.glob("*.libs/*")):
        name = re.sub(r"-[0-9a-f]{8}(?=\.so)", "", copied.name)
        path = pathlib.Path(archive.LIBRARIES, name)
        if not path.exists():
            raise archive.Refused(f"{copied.name}: {path} is missing; expected the library of which it is a copy")
        yield path


def add(unpacked):
    [folder] = unpacked.glob("*.dist-info")
    folder /= "licenses"
    headers = (f"/usr/include/{header}" for header in archive.HEADERS)
    archive.add_licences(folder, {archive.package_of(path) for path in (*libraries_of(unpacked), *headers)})
    shutil.copyfile(archive.ROOT / "LICENSE", folder / "LICENSE")
    [terms] = [file for file in importlib.metadata.files("nanobind") if file.name == "LICENSE"]
    shutil.copyfile(terms.locate(), folder / "nanobind")


def main():
    wheel = pathlib.Path(sys.argv[1]).resolve()
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, "-m", "wheel", "unpack", "-d", folder, wheel], check=True, stdout=subprocess.DEVNULL)
        [unpacked] = pathlib.Path(folder).iterdir()
        add(unpacked)
        wheel.unlink()
        subprocess.run([sys.executable, "-m", "wheel", "pack", "-d", wheel.parent, unpacked], check=True, stdout=subprocess.DEVNULL)
    if not wheel.exists():
        raise archive.Refused(f"{wheel}: was packed under another name; expected the same one")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except archive.Refused as refused:
        sys.exit(f"wheel_licences: {refused}")
