#!/usr/bin/env python3
"""Writes the laboratory's figures of what breaks without each part of a model, from lab/results, into apps/web/measured.js. With
--check, it writes nothing and exits with 1 if the file differs."""
import json
import pathlib
import sys

from write_claims import command_of

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = ROOT / "apps/web/measured.js"

# part: (experiment, series with the part, series without it, what the second series is)
FIGURES = {
    "position": [("no-positions", "rotary", "none", "without positions")],
    "norm": [("norm", "layer norm", "no norm", "without norms")],
    "attention": [("recall", "lstm+attention", "lstm", "with an LSTM alone"),
                  ("score-variance", "scaled", "unscaled", "without the scale of the scores"),
                  ("leaking-mask", "causal", "leaking", "without the causal mask")],
    "residual": [("residuals", "with residuals", "without", "without residual sums")],
    "ffn": [("neurons", "random", "the fact's neurons", "without the fact's own neurons instead of random ones")],
    "recurrence": [("gradient-distance", "attention", "rnn", "with a recurrence instead of attention")],
}


def figures():
    found = {}
    for part, rows in FIGURES.items():
        for experiment, with_it, without, words in rows:
            path = ROOT / f"lab/results/{experiment}.json"
            if not path.exists():
                continue
            result = json.loads(path.read_text(encoding="utf-8"))
            mean = {(point["series"], point["x"]): point["mean"] for point in result["points"]}
            last = max(x for series, x in mean if series == without and (with_it, x) in mean)
            found.setdefault(part, []).append([command_of(result), f"{result['metric']} ({result['axis']}: {last:g})",
                                              *(float(f"{mean[series, last]:.4g}") for series in (with_it, without)), words])
    return found


def text():
    lines = "".join(f"  {part}: [{', '.join(json.dumps(row, ensure_ascii=False) for row in rows)}],\n" for part, rows in figures().items())
    return f"""// Results of the laboratory without each part. Written by tools/docs/write_measured.py.

/** @type {{Record<string, [string, string, number, number, string][]>}} command, metric, value with the part and without it, what is left out */
export const MEASURED = {{
{lines}}};
"""


def main():
    if "--check" in sys.argv[1:]:
        if PAGE.read_text(encoding="utf-8") != text():
            print(f"{PAGE.relative_to(ROOT)}: differs from lab/results; run tools/docs/write_measured.py")
            return 1
        return 0
    PAGE.write_text(text(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
