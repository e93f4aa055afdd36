"""Another project can use the installed package: find_package(fovea), link, train, generate."""
import os
import pathlib
import re
import shlex
import subprocess
import sys
import unittest

from support import ROOT, FoveaTest


def code_in(language):
    """Returns the first block of code in a language that is in the documentation of the C interface."""
    return re.search(rf"```{language}\n(.*?)```", (ROOT / "docs/c-api.md").read_text(), re.DOTALL)[1]


class Package(FoveaTest):
    def do(self, *command, code=0, **how):
        done = subprocess.run([str(part) for part in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, **how)
        self.assertEqual(done.returncode, code, done.stdout[-3000:])
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
        for page in ("man/man1/fovea.1", "man/man1/fovea-train.1", "bash-completion/completions/fovea", "zsh/site-functions/_fovea", "fish/vendor_completions.d/fovea.fish"):
            self.assertGreater((prefix / "share" / page).stat().st_size, 500, page)
        library, = prefix.rglob("libfovea.so.0")
        self.check_examples_in_c(made / "generate", library.parent)
        self.check_python_example(library.parent)

    def test_all_that_is_installed_is_built_with_the_program(self):
        """Regression: ./run demo builds the program only, and cmake --install then failed, since libfovea.so was missing."""
        build = pathlib.Path(os.environ.get("FOVEA_BUILD", ROOT / "build/release"))
        script = (build / "cmake_install.cmake").read_text()
        installed = set(re.findall(rf'"{re.escape(str(build))}/([^"/]+(?:\.so[.0-9]*|\.a))"', script))
        self.assertLessEqual({"libfovea.a", "libfovea.so"}, installed)
        built = self.do("ninja", "-C", build, "-t", "inputs", "fovea_cli").splitlines()
        self.assertEqual(installed - set(built) - {"libfovea.so.0"}, set())  # the last one is a link beside the library

    def check_examples_in_c(self, program, libraries):
        """The C example, built with CMake and with pkg-config, generates the same text; so do programs of the documentation."""
        model = self.folder / "model"
        text = self.do(program, model, "the ")
        self.assertIn("100 tokens", text)
        self.assertIn("no such directory", self.do(program, "no such directory", code=1))
        # The quotes of pkg-config's output protect the spaces of the path.
        environment = {**os.environ, "PKG_CONFIG_PATH": str(libraries / "pkgconfig")}
        flags = shlex.split(self.do("pkg-config", "--cflags", "--libs", "fovea", env=environment))
        self.assertEqual(self.do("pkg-config", "--modversion", "fovea", env=environment).strip(), "0.1.0")
        run = {**os.environ, "LD_LIBRARY_PATH": str(libraries)}
        strict = ["-std=c99", "-pedantic", "-Wall", "-Wextra", "-Werror"]
        self.do("cc", *strict, ROOT / "examples/generate.c", *flags, "-o", self.folder / "by_hand")
        self.assertEqual(self.do(self.folder / "by_hand", model, "the ", env=run), text)
        documented = self.file("documented.c", code_in("c"))
        self.do("cc", *strict, documented, *flags, "-o", self.folder / "documented")
        self.assertGreater(len(self.do(self.folder / "documented", env=run, cwd=self.folder)), 50)  # its model is ./model
        only_c = self.folder / "only c"
        only_c.mkdir()
        (only_c / "CMakeLists.txt").write_text(
            "cmake_minimum_required(VERSION 3.22)\nproject(only_c LANGUAGES C)\nfind_package(fovea 0.1 REQUIRED COMPONENTS c)\n"
            "add_executable(program ../documented.c)\ntarget_link_libraries(program PRIVATE fovea::c)\n")
        self.do("cmake", "-G", "Ninja", "-S", only_c, "-B", only_c / "build", f"-DCMAKE_PREFIX_PATH={self.folder / 'prefix'}")
        self.do("cmake", "--build", only_c / "build")
        self.do(only_c / "build/program", cwd=self.folder)

    def check_python_example(self, libraries):
        script = self.file("example.py", code_in("python"))
        text = self.do(sys.executable, script, self.text, self.folder / "of_python", env={**os.environ, "LD_LIBRARY_PATH": str(libraries)})
        self.assertGreater(len(text), 50)


if __name__ == "__main__":
    unittest.main()
