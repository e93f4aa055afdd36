"""Code in the current directory was executed.

CMake padded the run path for Open MPI's folder, which left an empty element, and the loader interprets this as the current directory: a
file libhwy.so.1 in the folder of a downloaded model was executed when the program was run there. The program now has no run path."""
import os
import pathlib
import shutil
import subprocess
import unittest

from support import FOVEA, ROOT, FoveaTest

BUILD = pathlib.Path(os.environ.get("FOVEA_BUILD", ROOT / "build/release"))


@unittest.skipIf("san" in BUILD.name, "a build with sanitizers is not shipped")
@unittest.skipUnless(shutil.which("readelf"), "needs readelf of binutils")
class CurrentDirectory(FoveaTest):
    def dynamic(self, program):
        return subprocess.run(["readelf", "-W", "-d", program], stdout=subprocess.PIPE, text=True, check=True,
                              env={**os.environ, "LC_ALL": "C"}).stdout

    def loads_nothing_from_the_current_directory(self, program):
        self.assertNotRegex(self.dynamic(program), r"\((RPATH|RUNPATH)\)")
        folder = self.folder / "downloaded"
        folder.mkdir()
        names = [line.split("[")[1].rstrip("]") for line in self.dynamic(program).splitlines() if "(NEEDED)" in line]
        self.assertIn("libstdc++.so.6", names)
        for name in names:  # the loader ends the program if it opens one of these
            (folder / name).write_text("not a library")
        done = subprocess.run([program, "--version"], cwd=folder, capture_output=True, text=True, check=False)
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_the_built_program_loads_nothing_from_the_current_directory(self):
        self.loads_nothing_from_the_current_directory(FOVEA)

    def test_the_installed_program_loads_nothing_from_the_current_directory(self):
        prefix = self.folder / "prefix"
        done = subprocess.run(["cmake", "--install", BUILD, "--prefix", prefix], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.loads_nothing_from_the_current_directory(prefix / "bin/fovea")


if __name__ == "__main__":
    unittest.main()
