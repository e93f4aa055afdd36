#!/usr/bin/env python3
"""Judges the results in lab/results again, by `fovea lab judge`, and writes the conclusions into the files. A result without the hash of
its rule gets the hash of the text that it has. With --check, it writes nothing and exits with 1 if a file differs or a rule changed.

    FOVEA_BIN=build/release/fovea python3 tools/records/judge_results.py
"""
import json
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOVEA = os.environ.get("FOVEA_BIN", str(ROOT / "build/release/fovea"))


def ask(*arguments):
    return json.loads(subprocess.run([FOVEA, "lab", *arguments, "--json"], check=True, stdout=subprocess.PIPE, text=True).stdout)


def results():
    for path in sorted((ROOT / "lab/results").glob("*.json")):
        found = json.loads(path.read_text(encoding="utf-8"))
        if isinstance(found, dict) and "experiment" in found:
            yield path, found


def with_hash(found, rules):
    """Returns the result with the hash after its rule. A rule that is not the program's gets none: the result is void."""
    hashes = {rule["rule"]: rule["rule_hash"] for rule in rules}
    if "rule_hash" in found or found["rule"] not in hashes:
        return found
    keys = list(found)
    keys.insert(keys.index("rule") + 1, "rule_hash")
    return {key: hashes[found["rule"]] if key == "rule_hash" else found[key] for key in keys}


def main():
    check = "--check" in sys.argv[1:]
    rules, wrong = ask("list"), []
    for path, found in results():
        if not check:
            path.write_text(json.dumps(with_hash(found, rules), indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
        judged = ask("judge", str(path))
        if any(each["verdict"] == "void" for each in judged["conclusions"]):
            wrong.append(f"{path.name}: its rule is not that of the program; the result is void: run `fovea lab {found['experiment']}` again")
        elif check and judged["conclusions"] != found["conclusions"]:
            wrong.append(f"{path.name}: the conclusions are not those of its numbers; run tools/records/judge_results.py")
        if not check:
            found = with_hash(found, rules)
            found["claims"] = [each["claim"] for each in judged["conclusions"]]
            found["conclusions"] = judged["conclusions"]
            path.write_text(json.dumps(found, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    print("\n".join(wrong), end="\n" if wrong else "")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
