#!/usr/bin/env python3
"""run_tests.py [FOLDER...]: runs the tests of `./run test` on existing builds and counts the results. The last line is the summary.

FOLDER is a folder of tests/unit whose tests also run in the build with sanitizers. --sanitized: runs only the tests of that build."""
import os
import pathlib
import subprocess
import sys
import xml.etree.ElementTree as xml

ROOT = pathlib.Path(__file__).resolve().parents[2]


def run_ctest(preset, *selection):
    """Runs the tests of a build and shows the output of failed ones. Returns {name: passed | failed | skipped}."""
    build = ROOT / "build" / preset
    report = build / "tests.xml"
    report.unlink(missing_ok=True)
    command = ["ctest", "--test-dir", str(build), "--output-on-failure", "--output-junit", str(report),
               "--no-tests=error", "-j", str(os.cpu_count() or 1), *selection]
    code = subprocess.run(command, check=False).returncode
    results = {}
    if report.exists():
        for case in xml.parse(report).getroot().iter("testcase"):
            status = case.get("status")
            results[f"{preset}: {case.get('name')}"] = {"run": "passed", "notrun": "skipped"}.get(status, "failed")
    if code != 0 and "failed" not in results.values():
        results[f"{preset}: ctest (exit {code})"] = "failed"
    return results


def main():
    folders = sys.argv[1:]
    if folders == ["--sanitized"]:
        results = run_ctest("asan", "-R", "^(unit|regressions|fuzz)/", "-E", "_test\\.")
    else:
        results = run_ctest("release")
        if folders:
            results |= run_ctest("asan", "-L", f"^({'|'.join(folders)})$")
    for check in ("tools/checks/check_layers.py", "tools/checks/check_includes.py", "tools/checks/check_words.py"):
        code = subprocess.run([sys.executable, str(ROOT / check)], check=False).returncode
        results[check] = "failed" if code else "passed"

    named = {verdict: [name for name, each in results.items() if each == verdict]
             for verdict in ("passed", "failed", "skipped")}
    for verdict in ("skipped", "failed"):
        for name in named[verdict]:
            print(f"{verdict}: {name}")
    print(", ".join(f"{len(named[verdict])} {verdict}" for verdict in ("passed", "failed", "skipped")), flush=True)
    return 1 if named["failed"] or not named["passed"] else 0


if __name__ == "__main__":
    sys.exit(main())
