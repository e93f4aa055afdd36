#!/usr/bin/env python3
"""Writes lab/results/families.json: positions and norms of each family, as `fovea plan` reads them from the config.json of one checkpoint of
each family.

    python3 tools/records/write_families.py PROGRAM FOLDER...     (FOLDER has a folder of a checkpoint for each family)"""
import json
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
OUT = ROOT / "lab/results/families.json"


def source_of(model_type):
    """Returns the file that defines a family."""
    for path in sorted((ROOT / "src/model/families").glob("*.cc")):
        if not path.name.startswith("gguf") and re.search(rf'const Family \w+ = [^;]*?"{re.escape(model_type)}"', path.read_text(encoding="utf-8")):
            return path.relative_to(ROOT).as_posix()
    return None


def positions_of(stack):
    position = stack["position"]
    kind, bias = position["kind"], position.get("bias", "none")
    if bias != "none":
        return bias if kind == "none" else f"{kind} and {bias}"
    return kind


def place_of(placement, stack):
    places = [name for key, name in (("input", "before a sublayer"), ("output", "after a sublayer"), ("sum", "after the sum")) if placement[key]]
    return " and ".join(places) + (", parallel sublayers" if stack.get("parallel") else "")


def row_of(program, folder):
    model_type = json.loads((folder / "config.json").read_text(encoding="utf-8"))["model_type"]
    plan = subprocess.run([program, "plan", str(folder), "--json"], capture_output=True, text=True)
    if plan.returncode != 0:
        print(f"{folder.name}: {plan.stderr.strip()}", file=sys.stderr)
        return None
    spec = json.loads(plan.stdout)["spec"]
    stack = spec.get("decoder") or spec["encoder"]
    both = [positions_of(spec[name]) for name in ("encoder", "decoder") if spec.get(name)]
    positions = both[0] if len(set(both)) == 1 else f"{both[0]} (encoder), {both[1]} (decoder)"
    return {"family": model_type, "source": source_of(model_type), "positions": positions, "norm": stack["norm"]["kind"],
            "place": place_of(stack["placement"], stack)}


def main():
    program, *folders = sys.argv[1:]
    rows = {}
    for parent in folders:
        for config in sorted(pathlib.Path(parent).glob("*/config.json")):
            row = row_of(program, config.parent)
            if row and row["source"]:
                rows.setdefault(row["family"], row)
    OUT.write_text(json.dumps([rows[name] for name in sorted(rows)], indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
