"""The commands of ./run: the arguments that they refuse, and when bench --against reports a difference."""
import subprocess
import sys
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
