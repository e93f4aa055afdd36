"""The commands of ./run: the arguments that they refuse, and when bench --against reports a difference."""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

from support import ROOT

sys.path.insert(0, str(ROOT / "tools"))
import bench_against


class Run(unittest.TestCase):
    def refused(self, *arguments):
        done = subprocess.run([ROOT / "run", *arguments], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertRegex(done.stderr, r"\Arun: [^\n]*; expected [^\n]*\n\Z")

    def test_unknown_arguments_are_refused_in_one_line(self):
        self.refused("tets")
        self.refused("bare", "tets")
        self.refused("bare", "--release")
        self.refused("bare", "--ccache", "/nonesuch")


class Packages(unittest.TestCase):
    """Missing packages are installed without the messages of apt-get, by fake programs here."""

    def run_with(self, status):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        folder = pathlib.Path(holder.name)
        shutil.copy(ROOT / "run", folder)
        for name, script in (("dpkg-query", "exit 1"), ("sudo", 'exec "$@"'), ("cmake", "exit 1"),
                             ("apt-get", f"echo noise $1; seq 1 100; echo reason >&2; exit {status}")):
            (folder / name).write_text(f"#!/bin/sh\n{script}\n")
            (folder / name).chmod(0o755)
        environment = {key: value for key, value in os.environ.items() if key != "FOVEA_HAVE_PACKAGES"}
        environment["PATH"] = f"{folder}:{environment['PATH']}"
        done = subprocess.run([folder / "run", "bench"], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
                              env=environment)
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        return done.stderr.splitlines(), (folder / "build/packages.log").read_text()

    def test_the_messages_of_apt_get_go_to_a_file(self):
        lines, log = self.run_with(0)
        self.assertRegex(lines[0], "^Installing g[+][+] ")
        self.assertEqual(lines[1:], [])
        self.assertIn("noise update\n", log)
        self.assertIn("noise install\n", log)

    def test_the_last_messages_are_printed_if_apt_get_fails(self):
        lines, log = self.run_with(100)
        self.assertEqual((len(lines), lines[-2:]), (22, ["reason", "run: apt-get failed; build/packages.log has all its messages"]))
        self.assertNotIn("noise install", log)


class Against(unittest.TestCase):
    def test_the_interval_of_a_median_follows_from_the_ranks(self):
        # From tables of the sign test: with 20 values, the 6th and the 15th enclose the median with a probability of 95.9%.
        self.assertEqual(bench_against.interval([*range(20, 0, -1)]), (6, 15))
        self.assertEqual(bench_against.interval([*range(1, 7)]), (1, 6))
        self.assertIsNone(bench_against.interval([1, 2, 3, 4, 5]))

    def test_a_difference_is_reported_if_the_interval_excludes_equal_speed(self):
        for bounds, wanted in (((0.9, 0.99), "slower"), ((1.01, 1.1), "faster"), ((0.9, 1.1), "no difference seen"),
                               (None, "too few pairs")):
            self.assertEqual(bench_against.verdict(bounds), wanted)


if __name__ == "__main__":
    unittest.main()
