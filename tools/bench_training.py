#!/usr/bin/env python3
"""Measures the speed of training with fovea and PyTorch alternately, so that other load on the machine affects both.

PEERS_PYTHON names a Python with torch (default: python3); --peer names the script that measures PyTorch. If either is missing, only fovea
is measured."""
import argparse
import collections
import json
import os
import pathlib
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PRESETS = {"nano": "cpu", "baby": "baby"}  # fovea's preset: the peer script's name for the same model


def bench(program, *arguments):
    """Returns the result of `fovea bench`, or None if it fails."""
    command = [str(program), "bench", *map(str, arguments), "--json"]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    return json.loads(done.stdout) if done.returncode == 0 else None


def find_python():
    for python in filter(None, (os.environ.get("PEERS_PYTHON"), "python3")):
        try:
            if subprocess.run([python, "-c", "import torch"], capture_output=True, check=False).returncode == 0:
                return python
        except OSError:
            print(f"PEERS_PYTHON: {python} cannot be run", file=sys.stderr)
    return None


def peer(python, script, preset, steps):
    """Returns {(dtype, "eager" | "compiled"): tokens/s}."""
    command = [python, str(script), "--presets", PRESETS[preset], "--steps", str(steps), "--threads", str(os.cpu_count())]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    rows = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    return {(row["precision"], row["peer"].split()[-1]): row["figure"] for row in rows}


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--rounds", type=int, default=2)
    options.add_argument("--peer", type=pathlib.Path, default=ROOT / "../shared/peers/train_gpt.py")
    options.add_argument("--steps", type=int, default=0, help="steps per measurement; 0 = 150 for nano, 8 for baby")
    given = options.parse_args()
    python = find_python() if given.peer.exists() else None
    if not python:
        print("PyTorch is not measured: set PEERS_PYTHON to a Python with torch, and --peer to the script", file=sys.stderr)

    ours, theirs, shares = (collections.defaultdict(list) for _ in range(3))
    for turn in range(given.rounds):
        for preset in PRESETS:
            steps = given.steps or {"nano": 150, "baby": 8}[preset]
            for dtype in ("fp32", "bf16"):
                print(f"round {turn + 1}: {preset} {dtype}", file=sys.stderr)
                result = bench(ROOT / "build/release/fovea", "--train", preset, "--dtype", dtype, "--steps", steps)
                if result:
                    ours[preset, dtype].append(result["tokens_per_second"])
                    shares[preset, dtype].append(result["share_of_peak"])
            if python:
                print(f"round {turn + 1}: {preset} PyTorch", file=sys.stderr)
                for (dtype, way), figure in peer(python, given.peer, preset, steps).items():
                    theirs[preset, dtype, way].append(figure)

    print(f"{'model':6} {'dtype':5} {'fovea tok/s':>12} {'of peak':>8} {'torch eager':>12} {'torch compiled':>15} {'ratio':>6}")
    for (preset, dtype), figures in ours.items():
        speed = statistics.median(figures)
        peers = [statistics.median(theirs[preset, dtype, way]) if theirs[preset, dtype, way] else 0 for way in ("eager", "compiled")]
        columns = [f"{each:.0f}" if each else "-" for each in peers]
        ratio = f"{speed / max(peers):.2f}" if max(peers) else "-"
        print(f"{preset:6} {dtype:5} {speed:12.0f} {statistics.median(shares[preset, dtype]):8.0%} {columns[0]:>12} {columns[1]:>15} {ratio:>6}")
    return 0 if ours else 1


if __name__ == "__main__":
    sys.exit(main())
