"""What a release consists of: the checks of its files, the unit of systemd, and an installed tree that is moved. ./run release tries the
packages and archives themselves."""
import io
import os
import pathlib
import re
import shutil
import subprocess
import sys
import unittest
from unittest import mock

from support import ROOT, FoveaTest

sys.path.insert(0, str(ROOT / "tools/release"))
import archive
import elf
import sbom

BUILD = pathlib.Path(os.environ.get("FOVEA_BUILD", ROOT / "build/release"))
SANITIZED = "san" in BUILD.name


class Files(FoveaTest):
    def compile(self, name, code, *flags):
        out = self.folder / name
        subprocess.run(["g++", "-std=c++20", "-D_GLIBCXX_ASSERTIONS", self.file(f"{name}.cc", code), *flags, "-o", out], check=True)
        return out

    def problems(self, path):
        folder = self.folder / f"files of {path.name}"
        folder.mkdir()
        path.rename(folder / path.name)
        return list(elf.problems(folder))

    def test_a_symbol_that_is_too_new_is_found(self):
        newer = 'extern "C" unsigned arc4random();\nunsigned f() { return arc4random(); }\n'  # of glibc 2.36
        self.assertEqual(self.problems(self.compile("newer.so", newer, "-shared", "-fPIC")), ["newer.so: needs GLIBC_2.36; expected at most 2.34"])

    def test_a_run_path_that_leads_out_of_the_folder_is_found(self):
        for number, path in enumerate(("/tmp", "$ORIGIN/../lib", "", "$ORIGIN:")):
            found = self.problems(self.compile(f"run_path_{number}.so", "int f() { return 1; }\n", "-shared", "-fPIC", f"-Wl,-rpath,{path}:"))
            self.assertEqual([problem.split(";")[0] for problem in found], [f"run_path_{number}.so: has the run path {path}:"])
        self.assertEqual(self.problems(self.compile("inside.so", "int f() { return 1; }\n", "-shared", "-fPIC", "-Wl,-rpath,$ORIGIN/lib")), [])

    def test_a_library_of_neither_the_folder_nor_the_policy_is_found(self):
        self.compile("libother.so", "int g() { return 1; }\n", "-shared", "-fPIC", "-Wl,-soname,libother.so")
        use = "int g();\nint f() { return g(); }\n"
        for name, wanted in (("user.so", ["user.so: needs libother.so, which the folder lacks; expected a library of the folder or of the policy"]),
                             ("fovea_some.so", [])):  # a module, whose libraries may be missing
            self.assertEqual(self.problems(self.compile(name, use, "-shared", "-fPIC", f"-L{self.folder}", "-lother")), wanted)

    def test_own_functions_replace_those_of_a_newer_library(self):
        code = ("#include <condition_variable>\n#include <cstdio>\n#include <mutex>\n#include <thread>\n#include <vector>\n"
                "int main(int count, char**) {\n  std::mutex mutex;\n  std::condition_variable changed;\n  bool done = false;\n"
                "  std::thread other([&] { std::lock_guard<std::mutex> lock(mutex); done = true; changed.notify_all(); });\n"
                "  { std::unique_lock<std::mutex> lock(mutex); while (!done) changed.wait(lock); }\n"
                "  other.join();\n  std::puts(\"woken\");\n  return std::vector<int>(1)[count == 2];\n}\n")
        program = self.compile("waiting", code, ROOT / "packaging/older_libstdcxx.cc")
        for arguments, code, message in (([], 0, ""), (["more"], -6, "Assertion '__n < this->size()' failed.\n")):
            done = subprocess.run([program, *arguments], capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, code)
            self.assertTrue(done.stderr.endswith(message), done.stderr)
        self.assertEqual(self.problems(program), [])

    def test_an_archive_has_the_same_bytes_at_any_time(self):
        written = []
        for number, order in enumerate((("b", "a"), ("a", "b"))):
            top = self.folder / f"top {number}"
            top.mkdir()
            for name in order:
                (top / name).write_text(name)
                os.utime(top / name, (number, number))
            (top / "link").symlink_to("a")
            out = io.BytesIO()
            with mock.patch.dict(os.environ, SOURCE_DATE_EPOCH="1000000000"):
                archive.write_tar(out, top, "top")
            written.append(out.getvalue())
        self.assertEqual(*written)

    @unittest.skipUnless(shutil.which("dpkg-query"), "needs dpkg-query")
    def test_a_library_without_a_known_licence_is_refused(self):
        self.assertEqual(sbom.describe("zlib1g")["licenseDeclared"], "Zlib")
        with self.assertRaisesRegex(SystemExit, "bash: its licence is unknown; expected it in the table"):
            sbom.describe("bash")


class Verb(FoveaTest):
    def run_in_clone(self, *arguments):
        clone = self.folder / "clone"
        git = ["git", "-C", clone, "-c", "user.name=test", "-c", "user.email=test@example.org"]
        if not clone.exists():
            clone.mkdir()
            shutil.copy(ROOT / "run", clone)
            for command in (["init", "--quiet"], ["add", "run"], ["commit", "--quiet", "-m", "Add run"]):
                subprocess.run([*git, *command], check=True)
        return subprocess.run([clone / "run", "release", *arguments], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)

    def test_a_tree_with_changes_and_unknown_arguments_are_refused(self):
        self.run_in_clone("x")
        self.file("clone/new", "")
        for arguments in ((), ("nonesuch",)):
            done = self.run_in_clone(*arguments)
            self.assertEqual((done.returncode, done.stdout), (2, ""))
            self.assertRegex(done.stderr, r"\Arun: release[^\n]*; expected [^\n]*\n\Z")


@unittest.skipIf(SANITIZED, "a build with sanitizers is not installed")
class Installed(FoveaTest):
    def setUp(self):
        super().setUp()
        first, self.prefix = self.folder / "first", self.folder / "moved"
        done = subprocess.run(["cmake", "--install", BUILD, "--prefix", first, "--component", "program"], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        first.rename(self.prefix)

    def fovea(self, *arguments):
        return subprocess.run([self.prefix / "bin/fovea", *arguments], stdin=subprocess.DEVNULL, capture_output=True, check=False)

    def test_the_program_runs_after_its_tree_was_moved(self):
        self.ok(self.fovea("learn", "--out", self.folder / "model"))
        self.assertGreater(len(self.ok(self.fovea("generate", self.folder / "model", "-p", "the ", "-n", "20")).stdout), 10)
        self.assertFalse((self.prefix / "include").exists())

    def test_the_server_reads_the_configuration_of_the_service(self):
        self.refused(self.fovea("serve", "--config", self.prefix / "etc/fovea/serve.yaml"), 2, "/var/lib/fovea/models/model")

    @unittest.skipUnless(shutil.which("systemd-analyze"), "needs systemd-analyze")
    def test_the_unit_is_valid(self):
        unit = (self.prefix / "lib/systemd/system/fovea.service").read_text()
        # systemd searches the program in its own list of folders; the pages of the manual are not installed here.
        unit = re.sub(r"(?m)^Documentation=.*\n", "", unit).replace("ExecStart=fovea ", "ExecStart=/bin/echo ")
        done = subprocess.run(["systemd-analyze", "verify", "--man=no", self.file("fovea.service", unit)], capture_output=True, text=True, check=False)
        self.assertEqual((done.returncode, done.stderr), (0, ""))


if __name__ == "__main__":
    unittest.main()
