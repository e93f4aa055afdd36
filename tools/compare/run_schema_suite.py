#!/usr/bin/env python3
"""Runs JSON-Schema-Test-Suite against the automaton of schemas, and lists the cases that fail.

    git clone https://github.com/json-schema-org/JSON-Schema-Test-Suite
    tools/compare/run_schema_suite.py JSON-Schema-Test-Suite [--build build/release] [--markdown]

A case is a schema and a text that satisfies it or not:
  right     the automaton reads the text if it is valid, and only then
  refused   the schema has a keyword that is not supported: the server answers 400
  narrower  the automaton does not read a valid text: it generates other valid ones
  unsound   the automaton reads a text that is not valid
Only `unsound` can lead to a text that does not satisfy its schema; docs/json-schema.md has the results."""
import argparse
import collections
import json
import os
import pathlib
import subprocess
import sys
import tempfile


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("suite", type=pathlib.Path, help="folder of JSON-Schema-Test-Suite")
    parser.add_argument("--draft", default="draft2020-12")
    parser.add_argument("--build", type=pathlib.Path, default=pathlib.Path("build/release"))
    parser.add_argument("--markdown", action="store_true", help="also print a table by file")
    options = parser.parse_args()
    folder = options.suite / "tests" / options.draft
    if not folder.is_dir():
        sys.exit(f"{folder}: does not exist; expected a copy of JSON-Schema-Test-Suite")
    with tempfile.NamedTemporaryFile("r") as results:
        subprocess.run([options.build / "tests/unit_grammar", "--gtest_filter=SchemaSuite.*"], check=True, stdout=subprocess.DEVNULL,
                       env={**os.environ, "FOVEA_SCHEMA_SUITE": str(folder), "FOVEA_SCHEMA_RESULTS": results.name})
        cases = [json.loads(line) for line in results]
    counts = collections.Counter(case["result"] for case in cases)
    print(f"{len(cases)} cases: " + ", ".join(f"{counts[kind]} {kind}" for kind in ("right", "refused", "narrower", "unsound")))
    if options.markdown:
        print("\n| file | right | refused | narrower | unsound |\n|---|---|---|---|---|")
        for file in sorted({case["file"] for case in cases}):
            of_file = collections.Counter(case["result"] for case in cases if case["file"] == file)
            print(f"| {file} | " + " | ".join(str(of_file[kind]) for kind in ("right", "refused", "narrower", "unsound")) + " |")
    for kind in ("unsound", "narrower"):
        print(f"\n{kind}:")
        for case in cases:
            if case["result"] == kind:
                print(f"- {case['file']}: {case['group']}: {case['test']}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
