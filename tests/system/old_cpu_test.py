"""On a CPU without AVX2, the program ends with one line. Regression: static initialisers of the library used AVX before the check, and
the program died of an illegal instruction."""
import platform
import shutil
import subprocess
import unittest

from support import FOVEA, FoveaTest

QEMU = shutil.which("qemu-x86_64-static") or shutil.which("qemu-x86_64")


@unittest.skipUnless(QEMU and platform.machine() == "x86_64", "no qemu-x86_64 here, or not an x86-64 CPU")
class OldCpu(FoveaTest):
    def run_on(self, cpu):
        return subprocess.run([QEMU, "-cpu", cpu, FOVEA, "--version"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120, check=False)

    def test_a_cpu_without_avx2_is_named(self):
        result = self.run_on("Nehalem")
        self.assertEqual(result.returncode, 2)
        self.assertEqual(result.stderr, b"fovea: error: this CPU: missing avx2 fma bmi bmi2; expected an x86-64-v3 CPU\n")
        self.assertEqual(result.stdout, b"")

    def test_the_oldest_cpu_that_has_it_works(self):
        result = self.run_on("Haswell")
        self.assertEqual(result.returncode, 0)
        self.assertIn(b"CPU: avx2", result.stdout)


if __name__ == "__main__":
    unittest.main()
