"""Another project can use the installed package: find_package(fovea), link, train, generate."""
import os
import pathlib
import subprocess
import unittest

from support import ROOT, FoveaTest


class Package(FoveaTest):
    def do(self, *command, **how):
        done = subprocess.run([str(part) for part in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, **how)
        self.assertEqual(done.returncode, 0, done.stdout[-3000:])
        return done.stdout

    def test_the_example_builds_against_the_installed_package(self):
        build = pathlib.Path(os.environ.get("FOVEA_BUILD", ROOT / "build/release"))
        cache = (build / "CMakeCache.txt").read_text()
        if "FOVEA_SANITIZE:STRING=\n" not in cache:
            self.skipTest("a build with sanitizers is not installed")
        prefix, made = self.folder / "prefix", self.folder / "made"
        self.do("cmake", "--install", build, "--prefix", prefix)
        # Regression: a minimal system has no make, the default generator. ./run installs Ninja.
        self.do("cmake", "-G", "Ninja", "-S", ROOT / "examples", "-B", made, f"-DCMAKE_PREFIX_PATH={prefix}", "-DCMAKE_BUILD_TYPE=Release")
        self.do("cmake", "--build", made)
        told = self.do(made / "train_and_generate", self.text, self.folder / "model", "20")
        self.assertGreater(len(told), 50)
        self.assertIn("fovea", self.do(prefix / "bin/fovea", "--version"))


if __name__ == "__main__":
    unittest.main()
