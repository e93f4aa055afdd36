#!/usr/bin/env python3
"""Compares the speed of this tree with that of another revision. The two programs run alternately (ABBA), so that
other load on the machine affects both. The other revision is built and kept in .cache/against. For each row, prints the median of the paired ratios of speed, which is
above 1 if this tree is faster, and a 95% confidence interval of this median from the ranks of the ratios."""
import argparse
import json
import math
import statistics
import subprocess
import sys

import bench_models
from bench_models import MODELS, ROOT
from bench_rows import bench
ROWS = {  # name: (arguments of fovea bench, key of the speed in its JSON); a run takes 1 to 3 s on two cores
    "train fp32": (["--train", "nano", "--dtype", "fp32", "--steps", "50"], "tokens_per_second"),
    "train bf16": (["--train", "nano", "--dtype", "bf16", "--steps", "50"], "tokens_per_second"),
    "prompt bf16": ([MODELS / "llama", "--dtype", "bf16", "--prompt", "512", "--decode", "1"], "prompt_tokens_per_second"),
    "prompt int8": ([MODELS / "llama", "--dtype", "int8", "--prompt", "512", "--decode", "1"], "prompt_tokens_per_second"),
    "decode bf16": ([MODELS / "llama", "--dtype", "bf16", "--prompt", "16", "--decode", "256"], "decode_tokens_per_second"),
    "decode int8": ([MODELS / "llama", "--dtype", "int8", "--prompt", "16", "--decode", "256"], "decode_tokens_per_second"),
    "decode int4": ([MODELS / "llama", "--dtype", "int4", "--prompt", "16", "--decode", "256"], "decode_tokens_per_second"),
    "embed fp32": ([MODELS / "bert", "--dtype", "fp32", "--embed", MODELS / "lines.txt", "--runs", "1"], "tokens_per_second"),
}
KINDS = list(dict.fromkeys(name.split()[0] for name in ROWS))


def make_models():
    bench_models.make_llama(MODELS / "llama")
    bench_models.make_lines(MODELS / "lines.txt", bench_models.make_bert(MODELS / "bert"), 512, 5, 40)


def run(*command, cwd=ROOT):
    done = subprocess.run([str(part) for part in command], cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          check=False)
    if done.returncode:
        sys.exit(f"bench: {' '.join(map(str, command))}:\n{done.stdout[-3000:]}")
    return done.stdout.strip()


def build(revision):
    """Returns the program of a revision, built with the same preset, and its short name."""
    found = subprocess.run(["git", "rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}"], cwd=ROOT, stdout=subprocess.PIPE,
                           text=True, check=False)
    if found.returncode:
        sys.exit(f"bench: --against {revision}: no such revision; expected a commit, branch or tag")
    commit = found.stdout.strip()
    tree = ROOT / ".cache/against" / commit[:12]
    if not (tree / ".git").exists():
        run("git", "worktree", "prune")  # removes worktrees whose folder was deleted by hand
        run("git", "worktree", "add", "--detach", tree, commit)
    print(f"building {commit[:12]} in {tree}", file=sys.stderr)
    run("cmake", "--preset", "release", cwd=tree)
    run("cmake", "--build", "build/release", "--target", "fovea_cli", cwd=tree)
    return tree / "build/release/fovea", commit[:12]


def interval(ratios, level=0.95):
    """Returns the confidence interval of the median from the ranks of the ratios, for any distribution (None with fewer than 6): from the
    k-th smallest to the k-th largest, where 2 P(Binomial(n, 1/2) < k) <= 1 - level."""
    n, below, k = len(ratios), 0.0, 0
    while below + math.comb(n, k) / 2**n <= (1 - level) / 2:
        below += math.comb(n, k) / 2**n
        k += 1
    ordered = sorted(ratios)
    return (ordered[k - 1], ordered[n - k]) if k else None


def verdict(bounds):
    if bounds is None:
        return "too few pairs"
    low, high = bounds
    return "slower" if high < 1 else "faster" if low > 1 else "no difference seen"


def measure(ours, theirs, names, pairs):
    """Returns {row: [(speed of this tree, speed of the other)]}; a row that one of the programs cannot run is omitted with a message."""
    figures = {name: [] for name in names}
    for pair in range(pairs):
        print(f"pair {pair + 1} of {pairs}", file=sys.stderr)
        for name in list(figures):
            arguments, figure = ROWS[name]
            found = {}
            for program in (ours, theirs) if pair % 2 == 0 else (theirs, ours):
                result = bench(program, *arguments)
                found[program] = result and result.get(figure)
            if all(found.values()):
                figures[name].append((found[ours], found[theirs]))
            else:
                print(f"{name}: not measured: {'this tree' if found[theirs] else 'the other revision'} cannot run it", file=sys.stderr)
                del figures[name]
    return figures


def main():
    options = argparse.ArgumentParser(description=__doc__, prog="./run bench")
    options.add_argument("--against", metavar="REV", required=True, help="revision to compare with")
    options.add_argument("--rows", default=",".join(KINDS), help="some of: %(default)s")
    options.add_argument("--pairs", type=int, default=20, help="paired runs of each row (default 20)")
    options.add_argument("--json", action="store_true", help="one object on standard output")
    given = options.parse_args()
    kinds = given.rows.split(",")
    if unknown := [kind for kind in kinds if kind not in KINDS]:
        options.error(f"--rows: {unknown[0]}: unknown; expected some of {','.join(KINDS)}")
    if given.pairs < 1:
        options.error(f"--pairs: {given.pairs}; expected at least 1")
    names = [name for name in ROWS if name.split()[0] in kinds]
    theirs, commit = build(given.against)
    make_models()
    rows = []
    for name, figures in measure(ROOT / "build/release/fovea", theirs, names, given.pairs).items():
        ratios = [a / b for a, b in figures]
        bounds = interval(ratios)
        rows.append({"row": name, "tokens_per_second": statistics.median(a for a, _ in figures),
                     "against_tokens_per_second": statistics.median(b for _, b in figures),
                     "ratio": statistics.median(ratios), "interval": bounds, "verdict": verdict(bounds), "ratios": ratios})
    if given.json:
        print(json.dumps({"against": commit, "pairs": given.pairs, "rows": rows}))
    else:
        print(f"{'row':12} {'tok/s':>9} {commit:>13} {'ratio':>6}  {'95% interval':14}  this tree is")
        for row in rows:
            bounds = "{:.3f} to {:.3f}".format(*row["interval"]) if row["interval"] else "-"
            print(f"{row['row']:12} {row['tokens_per_second']:9.0f} {row['against_tokens_per_second']:13.0f} {row['ratio']:6.3f}  "
                  f"{bounds:14}  {row['verdict']}")
    return 0 if rows else 1


if __name__ == "__main__":
    sys.exit(main())
