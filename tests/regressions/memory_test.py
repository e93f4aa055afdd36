"""With a limit on the address space or on threads, every command succeeds or ends with an error of one line."""
import json
import resource
import unittest

from support import ROOT, SMALL, SOAK, FoveaTest, fovea

MIB = 1 << 20
SENTENCES = ROOT / "tests/goldens/sentence_model"


def at_most(limit, kind=resource.RLIMIT_AS):
    return lambda: resource.setrlimit(kind, (limit, limit))


class Limits(FoveaTest):
    """With one in six limits, train crashed with SIGSEGV or SIGABRT when a worker thread could not allocate memory."""

    # A sweep over all limits takes minutes. Each of these limits once failed in a different part of the program.
    LIMITS = [MIB * n for n in (range(96, 331, 3) if SOAK else (96, 132, 150, 180, 240))]

    def commands(self):
        model = self.model()
        for dtype in ("fp32", "bf16"):
            yield (f"train {dtype}", lambda: ("train", self.text, "--out", self.folder / "out", "--preset", "tiny", "--steps", "2",
                                             "--dtype", dtype, "--allow-change"))
        yield "generate", lambda: ("generate", model, "-p", "The", "-n", "8")
        yield "embed", lambda: ("embed", SENTENCES, self.text, "--out", self.folder / "vectors.npy")
        yield "doctor", lambda: ("doctor", model)

    def test_commands_succeed_or_report_an_error_with_a_limited_address_space(self):
        for name, command in self.commands():
            endings = set()
            for limit in self.LIMITS:
                with self.subTest(name, mib=limit // MIB):
                    r = fovea(*command(), preexec_fn=at_most(limit))
                    endings.add(r.returncode)
                    if r.returncode == 0 or (name == "doctor" and r.stdout):
                        continue
                    self.assertIn(r.returncode, (1, 3, 127), r.stderr)  # 127: the loader has no memory for the libraries
                    self.assertEqual(r.stderr.decode().splitlines()[-1].count("error"), 1, r.stderr)
            self.assertTrue(endings - {127}, name)

    def test_too_many_threads_are_reduced_with_a_warning(self):
        """OMP_NUM_THREADS=99999 crashed the program: OpenMP's runtime, which it used then, ends a process that cannot start a thread."""
        r = self.ok(fovea("train", self.text, "--out", self.folder / "out", *SMALL, "--steps", "1", "--json", env={"OMP_NUM_THREADS": "99999"}))
        self.assertLessEqual(json.loads(r.stdout)["threads"], 1024)
        self.assertIn(b"warning: OMP_NUM_THREADS: 99999 threads", r.stderr)
        many = 64
        r = self.ok(fovea("train", self.text, "--out", self.folder / "few", *SMALL, "--steps", "1", "--threads", many, "--json",
                          preexec_fn=at_most(600 * MIB)))
        self.assertLess(json.loads(r.stdout)["threads"], many)
        self.assertIn(b"warning: --threads: 64 threads", r.stderr)


if __name__ == "__main__":
    unittest.main()
