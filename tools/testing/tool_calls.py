#!/usr/bin/env python3
"""Generates calls of random functions in each format, with a random model under the constraint of the calls, and checks their arguments by
jsonschema (pip install jsonschema).

Usage: tool_calls.py BUILD [SETS [FORMAT...]]; default: 1000 sets of functions in each format. Prints the number of calls and of texts
that were cut off by the limit of tokens, which may be 5 %; exits with 1 if arguments do not satisfy their schema."""
import collections
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import jsonschema

ROOT = pathlib.Path(__file__).resolve().parents[2]


def main():
    program = pathlib.Path(sys.argv[1]).resolve() / "tests/unit_api"
    sets = sys.argv[2] if len(sys.argv) > 2 else "1000"
    formats = {"FOVEA_TOOL_FORMATS": ", ".join(sys.argv[3:])} if len(sys.argv) > 3 else {}
    calls, wrong, cut = collections.Counter(), collections.Counter(), {}
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "calls.jsonl"
        test = "CallConstraintTest.CallsOfRandomFunctionsAreValid"
        done = subprocess.run([program, f"--gtest_filter={test}"], cwd=ROOT, check=False, stdout=subprocess.DEVNULL,
                              env={**os.environ, **formats, "FOVEA_TOOL_CALLS": sets, "FOVEA_TOOL_CALLS_FILE": str(path)})
        for line in path.read_text().split("\n")[:-1]:
            row = json.loads(line)
            if "cut" in row:
                cut[row["format"]] = row["cut"]
                continue
            calls[row["format"]] += 1
            if not jsonschema.Draft202012Validator(row["schema"]).is_valid(row["arguments"]):
                wrong[row["format"]] += 1
                print(f"{row['format']}: {json.dumps(row['arguments'], ensure_ascii=False)} does not satisfy {json.dumps(row['schema'])}")
    for name in calls:
        print(f"{name:22} {calls[name]:6} calls, {cut[name]} of {sets} texts cut off, {wrong[name]} wrong")
    sys.exit(done.returncode != 0 or sum(wrong.values()) > 0)


if __name__ == "__main__":
    main()
