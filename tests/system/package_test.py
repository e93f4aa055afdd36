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
        done = subprocess.run([str(part) for part in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", check=False, **how)
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
        self.check_core_examples(made)
        self.check_model_examples(made)
        self.check_pages_of_core(prefix)
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

    def check_core_examples(self, made):
        """Examples on tensors, ops and layers alone learn what they are to learn."""
        losses = [float(loss) for loss in re.findall(r"loss ([\d.]+)", self.do(made / "logistic_regression"))]
        self.assertLess(losses[-1], 0.15)
        self.assertEqual(sorted(losses, reverse=True), losses)
        told = self.do(made / "gpt", self.text, "201")
        first, *_, last = [float(loss) for loss in re.findall(r"step \d+: loss ([\d.]+)", told)]
        self.assertLess(last, first - 2)
        self.assertGreater(len(told.split("step 200")[1]), 300)
        self.assertIn("usage", self.do(made / "gpt", "no such file", code=1))
        told = self.do(made / "own_layer")
        self.assertLess(float(re.search(r"gradient: (\S+)", told)[1]), 0.01)
        self.assertLess(float(re.search(r"sine: (\S+)", told)[1]), 0.05)

    def check_model_examples(self, made):
        """Examples that extend training, generation, inspection and serving."""
        focal = self.folder / "focal"
        self.assertRegex(self.do(made / "own_loss", self.text, focal, "30"), r"held-out text: \d")
        self.assertTrue((focal / "model.safetensors").exists())
        model = self.folder / "model"
        text = self.do(made / "own_sampler", model, "the ")
        self.assertGreater(len(text), 50)
        self.assertEqual(self.do(made / "own_sampler", model, "the "), text)
        steered = [self.do(made / "steer", model, "the ", "a", "b", strength) for strength in ("0", "0", "1000")]
        self.assertEqual(steered[0], steered[1])
        self.assertNotEqual(steered[0], steered[2])
        answers = self.do(made / "serve", model, input="the \na\nthe cat\n").splitlines()
        self.assertEqual(len([line for line in answers if " -> " in line]), 3)
        for program in ("own_loss", "own_sampler", "steer", "serve"):
            self.assertIn("usage", self.do(made / program, code=2))
            if program != "own_loss":
                self.assertIn("is missing", self.do(made / program, "no/such model", "a", "b", "c", code=1))

    def check_pages_of_core(self, prefix):
        """The blocks of each page of docs/core are one program, which prints what the page says."""
        folder = self.folder / "pages"
        folder.mkdir()
        lines = ["cmake_minimum_required(VERSION 3.22)", "project(pages LANGUAGES CXX)", "find_package(fovea REQUIRED)"]
        pages = sorted((ROOT / "docs/core").glob("*.md"))
        for page in pages:
            blocks = re.findall(r"```cpp\n(.*?)```", page.read_text(), re.DOTALL)
            (folder / f"{page.stem}.cc").write_text("".join(blocks))
            lines += [f"add_executable(page_{page.stem} {page.stem}.cc)", f"target_link_libraries(page_{page.stem} PRIVATE fovea::fovea)"]
        (folder / "CMakeLists.txt").write_text("\n".join(lines) + "\n")
        self.do("cmake", "-G", "Ninja", "-S", folder, "-B", folder / "build", f"-DCMAKE_PREFIX_PATH={prefix}")
        self.do("cmake", "--build", folder / "build")
        for page in pages:
            expected = re.search(r"```text\n(.*?)```", page.read_text(), re.DOTALL)[1]
            self.assertEqual(self.do(folder / f"build/page_{page.stem}", cwd=folder), expected, page.name)

    def check_examples_in_c(self, program, libraries):
        """The C example, built with CMake and with pkg-config, generates the same text; so do programs of the documentation."""
        model = self.folder / "model"
        text = self.do(program, model, "the ")
        self.assertIn("100 tokens", text)
        self.assertIn("no such directory", self.do(program, "no such directory", code=1))
        # The quotes of pkg-config's output protect the spaces of the path.
        environment = {**os.environ, "PKG_CONFIG_PATH": str(libraries / "pkgconfig")}
        flags = shlex.split(self.do("pkg-config", "--cflags", "--libs", "fovea", env=environment))
        self.assertEqual(self.do("pkg-config", "--modversion", "fovea", env=environment).strip(), "0.2.0")
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
            "cmake_minimum_required(VERSION 3.22)\nproject(only_c LANGUAGES C)\nfind_package(fovea 0.2 REQUIRED COMPONENTS c)\n"
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
