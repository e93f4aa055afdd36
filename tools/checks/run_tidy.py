#!/usr/bin/env python3
"""Runs clang-tidy on the sources of src/, contrib/, apps/ and examples/ that a build folder compiles, on all cores.

Usage: run_tidy.py BUILD [PART OF A PATH...]; default: all sources. BUILD/tidy keeps one empty file per clean source, named
by the hash of everything that clang-tidy read: the source, its headers, its command, the settings and the version."""
import concurrent.futures
import hashlib
import json
import os
import pathlib
import shlex
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
TIDY = "clang-tidy-19"


def output_of(*command, **options):
    return subprocess.run(command, capture_output=True, text=True, check=False, **options).stdout


def key(entry, settings):
    """The hash of what clang-tidy reads for this entry of compile_commands.json; None if the compiler cannot say."""
    command = shlex.split(entry["command"])
    output = command.index("-o")
    rule = output_of(*command[:output], *command[output + 2 :], "-M", cwd=entry["directory"])
    files = shlex.split(rule.replace("\\\n", " "))[1:]
    if not files:
        return None
    digest = hashlib.sha256(settings + entry["command"].encode())
    for name in files:
        digest.update(name.encode() + (pathlib.Path(entry["directory"]) / name).read_bytes())
    return digest.hexdigest()


def check(build, entry, settings):
    name = key(entry, settings)
    clean = build / "tidy" / name if name else None
    if clean and clean.exists():
        return entry["file"], 0, ""
    done = subprocess.run([TIDY, "-p", str(build), "--quiet", entry["file"]], capture_output=True, text=True, check=False)
    if clean and done.returncode == 0:
        clean.touch()
    return entry["file"], done.returncode, done.stdout.strip()


def main():
    build = (ROOT / sys.argv[1]).resolve()
    (build / "tidy").mkdir(exist_ok=True)
    settings = (ROOT / ".clang-tidy").read_bytes() + output_of(TIDY, "--version").encode()
    commands = json.loads((build / "compile_commands.json").read_text())
    tops = tuple(str(ROOT / top) + os.sep for top in ("src", "contrib", "apps", "examples"))
    entries = {entry["file"]: entry for entry in commands if entry["file"].startswith(tops)}
    sources = sorted(entries)
    if parts := sys.argv[2:]:
        sources = [source for source in sources if any(part in source for part in parts)]
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for source, code, output in pool.map(lambda each: check(build, entries[each], settings), sources):
            if code != 0:
                failed += 1
                print(f"{os.path.relpath(source, ROOT)}\n{output}\n", flush=True)
    print(f"clang-tidy: {len(sources)} files, {failed} with problems")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
