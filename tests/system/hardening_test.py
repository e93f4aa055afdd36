"""The program is linked and compiled with hardening options."""
import json
import os
import pathlib
import shlex
import shutil
import subprocess
import unittest

from support import FOVEA, ROOT, FoveaTest

BUILD = pathlib.Path(os.environ.get("FOVEA_BUILD", ROOT / "build/release"))
CACHE = BUILD / "CMakeCache.txt"
LIBRARY = BUILD / "libfovea.so"
SHIPPED = [FOVEA, *([LIBRARY] if LIBRARY.exists() else [])]
RELEASE = CACHE.exists() and "\nCMAKE_BUILD_TYPE:STRING=Release\n" in CACHE.read_text()
SANITIZED = CACHE.exists() and "\nFOVEA_SANITIZE:STRING=\n" not in CACHE.read_text()


def readelf(*arguments, program=FOVEA):
    # -W prevents line breaks within an entry.
    return subprocess.run(["readelf", "-W", *arguments, program], stdout=subprocess.PIPE, text=True, check=True,
                          env={**os.environ, "LC_ALL": "C"}).stdout


def compilations():
    """Returns {object file of the program or its libraries: words of its compiler's command line}."""
    commands = [shlex.split(entry["command"]) for entry in json.loads((BUILD / "compile_commands.json").read_text())]
    found = {words[words.index("-o") + 1]: set(words) for words in commands}
    return {path: words for path, words in found.items() if "fovea_" in path}


@unittest.skipIf(SANITIZED, "a build with sanitizers is not shipped")
@unittest.skipUnless(shutil.which("readelf"), "needs readelf of binutils")
class Hardening(FoveaTest):
    def test_the_program_is_position_independent(self):
        self.assertRegex(readelf("-h"), r"Type: +DYN")
        self.assertRegex(readelf("-d"), r"\(FLAGS_1\).*\bPIE\b")

    def test_relocations_are_read_only(self):
        for file in SHIPPED:
            self.assertIn("GNU_RELRO", readelf("-l", program=file))
            self.assertRegex(readelf("-d", program=file), r"\(FLAGS\).*\bBIND_NOW\b")
            self.assertNotIn("(TEXTREL)", readelf("-d", program=file))

    def test_no_segment_is_writable_and_executable(self):
        for file in SHIPPED:
            segments = readelf("-l", program=file)
            stack = [line for line in segments.splitlines() if "GNU_STACK" in line]
            self.assertEqual([line.split()[6] for line in stack], ["RW"])
            self.assertNotIn(" RWE ", segments)

    def test_run_time_checks_are_compiled_in(self):
        for file in SHIPPED:
            symbols = readelf("--dyn-syms", program=file)
            self.assertIn("__stack_chk_fail@", symbols)  # -fstack-protector-strong
            self.assertIn("__glibcxx_assert_fail", symbols)  # _GLIBCXX_ASSERTIONS
            if RELEASE:
                self.assertRegex(symbols, r"__(mem|str|v?sn?printf|v?fprintf|p?read|recv)[a-z]*_chk@")  # _FORTIFY_SOURCE

    @unittest.skipUnless(LIBRARY.exists(), "needs libfovea.so, of the target fovea_shared")
    def test_the_library_is_shared_and_has_no_run_path(self):
        self.assertRegex(readelf("-h", program=LIBRARY), r"Type: +DYN")
        self.assertNotRegex(readelf("-d", program=LIBRARY), r"\((RPATH|RUNPATH)\)")

    def test_indirect_branches_and_returns_are_guarded(self):
        # Each object file has the marks. The program lacks them: the linker keeps only marks that all files have, and crt1.o of Debian's C
        # library has none.
        objects = list(compilations())
        notes = subprocess.run(["readelf", "-nW", *objects], cwd=BUILD, stdout=subprocess.PIPE, text=True, check=False).stdout
        marked = {part.split("\n")[0] for part in notes.split("\nFile: ") if "x86 feature: IBT, SHSTK" in part}
        self.assertEqual([path for path in objects if path not in marked], [])

    def test_every_file_of_the_program_is_compiled_with_the_flags(self):
        flags = {"-fstack-protector-strong", "-fstack-clash-protection", "-fcf-protection=full", "-D_GLIBCXX_ASSERTIONS"}
        if RELEASE:
            flags.add("-D_FORTIFY_SOURCE=3")
        for path, words in compilations().items():
            self.assertEqual(flags - words, set(), path)
            self.assertTrue(words & {"-fPIC", "-fPIE"}, path)


if __name__ == "__main__":
    unittest.main()
