#!/usr/bin/env python3
"""Runs clang-tidy on the sources of src/, apps/ and examples/ that a build folder compiles, on all cores.

Usage: run_tidy.py BUILD [PART OF A PATH...]; default: all sources."""
import concurrent.futures
import json
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent


def check(build, source):
    done = subprocess.run(["clang-tidy-14", "-p", str(build), "--quiet", source], capture_output=True, text=True, check=False)
    return source, done.returncode, done.stdout.strip()


def main():
    build = (ROOT / sys.argv[1]).resolve()
    commands = json.loads((build / "compile_commands.json").read_text())
    tops = tuple(str(ROOT / top) + os.sep for top in ("src", "apps", "examples"))
    sources = sorted({entry["file"] for entry in commands if entry["file"].startswith(tops)})
    if parts := sys.argv[2:]:
        sources = [source for source in sources if any(part in source for part in parts)]
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for source, code, output in pool.map(lambda each: check(build, each), sources):
            if code != 0:
                failed += 1
                print(f"{os.path.relpath(source, ROOT)}\n{output}\n", flush=True)
    print(f"clang-tidy: {len(sources)} files, {failed} with problems")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
