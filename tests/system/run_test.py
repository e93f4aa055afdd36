"""The commands of ./run: the arguments that they refuse, how bench compares programs, and when bench --against reports a difference."""
import contextlib
import io
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

from support import ROOT

sys.path.insert(0, str(ROOT / "tools/bench"))
import bench_against
import bench_all
import bench_peers
import bench_rows


class Run(unittest.TestCase):
    def refused(self, *arguments):
        done = subprocess.run([ROOT / "run", *arguments], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertRegex(done.stderr, r"\Arun: [^\n]*; expected [^\n]*\n\Z")

    def test_unknown_arguments_are_refused_in_one_line(self):
        self.refused("tets")
        self.refused("docs", "--chekc")
        self.refused("bare", "tets")
        self.refused("bare", "--release")
        self.refused("bare", "--ccache", "/nonesuch")


class Help(unittest.TestCase):
    def test_the_help_of_bench_builds_nothing(self):
        with tempfile.TemporaryDirectory() as folder:
            shutil.copy(ROOT / "run", folder)
            shutil.copytree(ROOT / "tools", f"{folder}/tools")
            for options, words in (((), "usage: ./run bench"), (("--against", "HEAD"), "usage: ./run bench [-h] --against")):
                done = subprocess.run([f"{folder}/run", "bench", *options, "--help"], capture_output=True, text=True, check=False, timeout=60,
                                      env={**os.environ, "FOVEA_HAVE_PACKAGES": "1"})
                self.assertEqual((done.returncode, done.stdout[:len(words)]), (0, words), done.stderr)
            self.assertFalse(os.path.exists(f"{folder}/build"))


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
        self.assertEqual(lines[1:], ["run: the build failed; build/release.log has all its messages"])  # by the fake cmake
        self.assertIn("noise update\n", log)
        self.assertIn("noise install\n", log)

    def test_the_last_messages_are_printed_if_apt_get_fails(self):
        lines, log = self.run_with(100)
        self.assertEqual((len(lines), lines[-2:]), (22, ["reason", "run: apt-get failed; build/packages.log has all its messages"]))
        self.assertNotIn("noise install", log)


class Build(unittest.TestCase):
    """A failed build prints the first error of each failed file: g++ lists 60 candidates below an error with operators."""

    def errors_of(self, files, *lines):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        folder = pathlib.Path(holder.name)
        shutil.copy(ROOT / "run", folder)
        shutil.copy(ROOT / "CMakePresets.json", folder)
        lines = ["cmake_minimum_required(VERSION 3.22)", "project(broken NONE)", *lines]
        for name, text in files.items():
            (folder / name).write_text(text)
            lines.append(f"add_custom_command(OUTPUT {name}.o COMMAND c++ -fsyntax-only ${{CMAKE_SOURCE_DIR}}/{name})")
        lines.append(f"add_custom_target(fovea_cli DEPENDS {' '.join(f'{name}.o' for name in files)})")
        (folder / "CMakeLists.txt").write_text("\n".join(lines))
        done = subprocess.run([folder / "run", "bench", "--rows", "none"], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              check=False, env={**os.environ, "FOVEA_HAVE_PACKAGES": "1"})
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        return done.stderr.splitlines()

    def test_the_first_error_of_each_failed_file_is_printed(self):
        lines = self.errors_of({"one.cc": "struct A {} a;\nbool b = a == 1;\nint c = a;\n", "two.cc": "#include <nonesuch>\n"})
        errors = [line.split("/")[-1] for line in lines if "error: " in line]
        self.assertEqual(sorted(line.split(" error: ")[0] for line in errors), ["one.cc:2:12:", "two.cc:1:10: fatal"], lines)
        self.assertLessEqual(len(lines), 9)
        self.assertEqual(lines[-1], "run: the build failed; build/release.log has all its messages")

    def test_an_error_of_cmake_is_printed(self):
        self.assertIn("two words", " ".join(self.errors_of({}, "message(FATAL_ERROR \"two words\")")))


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


class Beside(unittest.TestCase):
    """./run bench: the figures of fovea and of other programs, which are replaced here."""

    row = bench_rows.Row("prompt", "bf16", tokens=512)

    class Peer:
        def __init__(self, name, figures):
            self.name, self.figures = name, iter(figures)
            self.version, self.flags = "1.0", "none"

        def measures(self, row):
            return True

        def measure(self, row, threads):
            figure = next(self.figures)
            if isinstance(figure, str):
                raise bench_peers.PeerError(figure)
            return figure

    def measured(self, *peers):
        speeds = iter((100.0, 300.0, 200.0))
        rates = {"cpu": "a CPU", "isa": "avx2", "fp32_flops": 1e11, "bf16_flops": 1e11, "int8_operations": 2e11,
                 "one_thread_bytes_per_second": 1e10, "bytes_per_second": 2e10}

        def bench(program, *arguments):
            return rates if "--machine" in arguments else {"prompt_tokens_per_second": next(speeds), "weight_bytes": 1 << 28}

        measured = bench_all.Measurements([self.row], peers, 2)
        errors = io.StringIO()
        with mock.patch.object(bench_all, "bench", bench), contextlib.redirect_stderr(errors):
            for number in range(3):
                measured.round(number)
        return measured, errors.getvalue()

    def test_a_ratio_is_the_median_of_the_rounds(self):
        peers = self.Peer("slow", [50.0, 60.0, 50.0]), self.Peer("fast", [100.0, 100.0, 100.0])
        measured, _ = self.measured(*peers)
        summary = measured.summary(self.row)
        self.assertEqual(summary["fovea"], {"median": 200.0, "least": 100.0, "most": 300.0})
        self.assertEqual((summary["fastest"], summary["peers"]["fast"]["ratio"], summary["peers"]["slow"]["ratio"]), ("fast", 2.0, 4.0))
        self.assertAlmostEqual(summary["share"], 200 * self.row.cost({"weight_bytes": 1 << 28})[0] / 1e11, 3)
        self.assertEqual(summary["limit"], "products")
        record = bench_all.make_record(measured, peers, "some-class", 3)
        shown = io.StringIO()
        with contextlib.redirect_stdout(shown):
            bench_all.print_record(record)
        self.assertIn("prompt of 512 bf16", shown.getvalue())
        self.assertIn("fast 1.0: none", shown.getvalue())

    def test_a_program_that_fails_is_named_once_and_left_out(self):
        measured, errors = self.measured(self.Peer("broken", ["no such kernel"]), self.Peer("good", [100.0] * 3))
        self.assertEqual(errors.count("prompt of 512 bf16: broken failed: no such kernel\n"), 1)
        self.assertEqual(list(measured.summary(self.row)["peers"]), ["good"])


if __name__ == "__main__":
    unittest.main()
