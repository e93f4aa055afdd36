#!/usr/bin/env python3
"""Compares the lines of each storey, the options of each verb, and the places in src/ above the kernels that access elements of tensors
through pointers, with tools/structure/budget.json, and prints them. Exits with 1 if one of
them is above its budget: the change that raises a budget says why.

The program is $FOVEA_BIN; default: build/release/fovea. Without it, options are not counted."""
import json
import os
import pathlib
import sys

import host_access
from measure import line_counts, option_counts

ROOT = pathlib.Path(__file__).resolve().parents[2]


def main():
    budget = json.loads((ROOT / "tools/structure/budget.json").read_text())
    program = pathlib.Path(os.environ.get("FOVEA_BIN", ROOT / "build/release/fovea"))
    counts = {"lines": line_counts(ROOT)[0], "places of host access": {"src": len(list(host_access.places(host_access.DIRECT)))}}
    if program.is_file():
        counts["options"] = option_counts(program)
    above = 0
    for kind, found in counts.items():
        shown = [f"{name} {count} of {budget[kind].get(name, 0)}" for name, count in sorted(found.items())]
        print(f"budget of {kind}: {', '.join(shown)}")
        for name, count in found.items():
            if count > budget[kind].get(name, 0):
                above += 1
                print(f"budget: {name} has {count} {kind}; expected at most {budget[kind].get(name, 0)}, or a change of "
                      "tools/structure/budget.json that says why")
    return 1 if above else 0


if __name__ == "__main__":
    sys.exit(main())
