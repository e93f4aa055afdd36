#!/usr/bin/env python3
"""Runs the fuzz targets of build/fuzz (cmake --preset fuzz) one after the other, for a limited time each.

Usage: fuzz.py [SECONDS [TARGET...]]; default: 60 seconds, all targets. Each target starts from tests/fuzz/corpus/TARGET and from its
earlier findings in build/fuzz/corpus/TARGET. A failing input is saved in build/fuzz/failures; once the fault is fixed, add the input to a test."""
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = ROOT / "build/fuzz"
# Limits on time and memory for one input, far above the needs of any target, even with sanitizers.
LIMITS = ["-timeout=20", "-rss_limit_mb=3000", "-malloc_limit_mb=1000"]
# Longer inputs for targets whose valid inputs are long.
LENGTHS = {"tokenizer_json": 16384, "chat_template": 8192, "gguf": 32768, "mmproj": 65536}


def run(target, seconds):
    found, failures = BUILD / "corpus" / target, BUILD / "failures"
    found.mkdir(parents=True, exist_ok=True)
    failures.mkdir(exist_ok=True)
    corpus = ROOT / "tests/fuzz/corpus" / target
    words = ROOT / "tests/fuzz/words" / target
    command = [BUILD / "tests" / f"fuzz_{target}", found, corpus, f"-max_total_time={seconds}", *LIMITS,
               f"-max_len={LENGTHS.get(target, 4096)}", f"-artifact_prefix={failures}/{target}-", "-print_final_stats=1"]
    if words.exists():
        command.append(f"-dict={words}")
    environment = dict(os.environ, ASAN_OPTIONS="detect_leaks=1:allocator_may_return_null=0")
    done = subprocess.run(list(map(str, command)), cwd=ROOT, env=environment, capture_output=True, text=True, errors="replace", check=False)
    runs = next((line.split()[-1] for line in done.stderr.splitlines() if "number_of_executed_units" in line), "?")
    print(f"fuzz {target}: {'ok' if done.returncode == 0 else 'FAILED'}, {runs} inputs", flush=True)
    if done.returncode != 0:
        print("\n".join(done.stderr.splitlines()[-60:]), flush=True)
    return done.returncode == 0


def main():
    seconds = int(sys.argv[1]) if len(sys.argv) > 1 else 60
    every = sorted(path.stem for path in (ROOT / "tests/fuzz").glob("*.cc") if path.stem != "replay")
    targets = sys.argv[2:] or every
    if unknown := [target for target in targets if target not in every]:
        sys.exit(f"fuzz: {', '.join(unknown)}: unknown; expected some of {', '.join(every)}")
    results = [run(target, seconds) for target in targets]
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
