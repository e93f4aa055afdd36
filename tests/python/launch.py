#!/usr/bin/env python3
"""Runs a test of the Python package with the Python in which `./run wheel` has installed it, or one in FOVEA_PYTHON. Without it, the test
is skipped.

Usage: launch.py MODULE.CLASS.TEST"""

import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
CHECK = "import sys, numpy, fovea; sys.exit(sys.version_info < (3, 12))"


def main():
    for python in (os.environ.get("FOVEA_PYTHON"), str(ROOT / ".cache/wheel/bin/python")):
        if python and pathlib.Path(python).exists() and subprocess.run([python, "-c", CHECK], capture_output=True, check=False).returncode == 0:
            return subprocess.run([python, "-m", "unittest", *sys.argv[1:]], check=False).returncode
    print("skipped=1: no Python of 3.12 or later has the package; ./run wheel builds and installs it in .cache/wheel")
    return 0


if __name__ == "__main__":
    sys.exit(main())
