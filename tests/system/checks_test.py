"""The checks of C++ files find what a newer compiler or library refuses, although the compiler at hand accepts it."""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

from support import ROOT


class Checks(unittest.TestCase):
    """Regression: in Debian 13 the tests did not compile. One file used std::sort without <algorithm>, which another header of Debian
    12's library included by chance, and several compared strings with elements of JSON values."""

    def problems(self, check, files):
        with tempfile.TemporaryDirectory() as holder:
            folder = pathlib.Path(holder)
            for name, text in files.items():
                path = folder / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
            shutil.copytree(ROOT / "tools/checks", folder / "tools/checks")
            done = subprocess.run([sys.executable, folder / "tools/checks" / check], capture_output=True, text=True, check=False)
        lines = done.stdout.splitlines()
        self.assertEqual(lines[-1], f"{check[:-3]}: {len(lines) - 1} problem{'s' * (len(lines) != 2)}", done.stderr)
        self.assertEqual(done.returncode, 1 if len(lines) > 1 else 0)
        return lines[:-1]

    def test_a_missing_header_of_the_standard_library_is_found(self):
        use = "// std::map\nvoid f(std::vector<uint8_t>& x) { std::ranges::sort(x); std::move(x); }  // std::list\n"
        self.assertEqual(self.problems("check_includes.py", {"src/core/base/a.cc": "#include <cstdint>\n" + use}),
                         ["src/core/base/a.cc:3: uses vector; expected #include <vector>", "src/core/base/a.cc:3: uses sort; expected #include <algorithm>"])
        header = "#include <algorithm>\n#include <vector>\n#include <stdint.h>\n"
        self.assertEqual(self.problems("check_includes.py", {"include/fovea/a.h": header, "src/core/base/b.h": '#include "fovea/a.h"\n',
                                                             "src/core/base/a.cc": '#include "base/b.h"\n' + use}), [])

    def test_a_comparison_with_a_json_value_is_found(self):
        def found(line):
            return self.problems("check_layers.py", {"tests/unit/a_test.cc": line + "\n"})
        for line in ('  EXPECT_EQ(found.name, golden["name"]);', '  ASSERT_NE(f(x, "y"),\n            golden[i]["name"][0]) << i;',
                     '  EXPECT_EQ(name, golden.at("names")[i]);'):
            self.assertEqual(found(line), ["tests/unit/a_test.cc:1: compares with a JSON value; expected its .get<T>()"])
        for line in ('  EXPECT_EQ(found.name, golden["name"].get<std::string>());', '  EXPECT_EQ(answer["name"], "x");',
                     '  EXPECT_EQ(answer["name"], golden["name"]);', '  EXPECT_EQ(a[i], b[i]);'):
            self.assertEqual(found(line), [])

    def test_folders_use_only_those_before_them(self):
        def found(**files):
            return self.problems("check_layers.py", {f"src/{name.replace('__', '/')}.h": text for name, text in files.items()})
        include = '#include "{}"\n'.format
        self.assertEqual(found(core__ops__a=include("tensor/b.h"), core__tensor__b="", infer__embed__c=include("ops/a.h")), [])
        self.assertEqual(found(core__tensor__b=include("nn/a.h"), model__nn__a=""),
                         ['src/core/tensor/b.h:1: includes "nn/a.h"; tensor may not use nn'])
        self.assertEqual(found(text__tokenizer__a=include("tokenizer/models/b.h"), text__tokenizer__models__b=include("tokenizer/a.h")),
                         ['src/text/tokenizer/a.h: includes "tokenizer/models/b.h"; src/text/tokenizer/models uses src/text/tokenizer too'])

    def test_public_headers_and_namespaces_follow_the_storeys(self):
        def found(**files):
            return self.problems("check_layers.py", {f"{name.replace('__', '/')}.h": text for name, text in files.items()})
        include = '#include "fovea/{}"\n'.format
        self.assertEqual(found(include__fovea__infer__a=include("text/b.h"), include__fovea__c=include("train/d.h"), src__text__chat__e=include("text/b.h")), [])
        self.assertEqual(found(include__fovea__text__a=include("infer/b.h")), ['include/fovea/text/a.h:1: includes "fovea/infer/b.h"; text is below infer'])
        self.assertEqual(found(src__model__nn__a=include("open.h")), ['src/model/nn/a.h:1: includes "fovea/open.h"; model is below api'])
        declared = "namespace fovea::text {\nclass B;\n}\n"
        self.assertEqual(found(src__core__ops__a="namespace fovea {\n", src__text__jinja__a="namespace fovea::text::jinja {\n",
                               include__fovea__infer__a=declared + "namespace fovea::infer {\n"), [])
        self.assertEqual(found(src__infer__embed__a="namespace fovea {\n", src__api__api__b=declared),
                         ["src/api/api/b.h:1: namespace fovea::text {: expected the namespace fovea",
                          "src/infer/embed/a.h:1: namespace fovea {: expected the namespace fovea::infer"])

    def test_public_functions_have_python_names(self):
        done = subprocess.run([sys.executable, ROOT / "tools/checks/check_python_names.py"], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stdout)
        header = "namespace fovea {\nint one(int x);\nstruct S {\n  void two() const { three(); }\n};\n}\n"
        self.assertEqual(self.problems("check_python_names.py", {"include/fovea/a.h": header, "python/names.txt": "gone -> x\n",
                                                                 "python/src/a.cc": 'm.def("two", &two);', "python/fovea/a.py": "", "include/fovea/c.h": ""}),
                         ["include/fovea/a.h: one has no Python name; expected one, or a line in python/names.txt",
                          "python/names.txt:1: gone is no public function"])

    def test_lines_and_options_are_within_their_budget(self):
        done = subprocess.run([sys.executable, ROOT / "tools/structure/check_budget.py"], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertIn("budget of options: bench", done.stdout)


class NewFamily(unittest.TestCase):
    """tools/new_family.py makes files that compile."""

    def test_a_family_like_another(self):
        with tempfile.TemporaryDirectory() as holder:
            folder = pathlib.Path(holder)
            for name in ("src/model/families", "tools/goldens"):
                shutil.copytree(ROOT / name, folder / name)
            shutil.copy(ROOT / "tools/new_family.py", folder / "tools")

            def made(*arguments):
                return subprocess.run([sys.executable, folder / "tools/new_family.py", *arguments], capture_output=True, text=True, check=False)

            for name, like, stem in (("deep-thought", "llama", "DeepThought"), ("mystery", "starcoder2", "Mystery"), ("enigma", "albert", "Enigma")):
                done = made(name, "--like", like)
                self.assertEqual(done.returncode, 0, done.stderr)
                identifier = name.replace("-", "_")
                path = folder / f"src/model/families/{identifier}.cc"
                text = path.read_text(encoding="utf-8")
                self.assertIn(f'const Family {identifier} = {{', text)
                self.assertNotIn(f'"{like}"', text)
                for listed, line in (("src/model/families/registry.h", f"extern const Family {identifier};"), ("src/model/families/registry.cc", f"&{identifier},"),
                                     ("tools/goldens/make_checkpoints.py", f'"{identifier}": ("{stem}For')):
                    self.assertIn(line, (folder / listed).read_text(encoding="utf-8"))
                folders = [f"-I{folder / 'src/model'}", *(f"-I{ROOT / each}" for each in ("src/core", "src/text", "src/model", "include"))]
                compiled = subprocess.run([os.environ.get("CXX", "c++"), "-std=c++20", "-fsyntax-only", *folders, path], capture_output=True, text=True, check=False)
                self.assertEqual(compiled.returncode, 0, compiled.stderr)
            for arguments, part in ((("mystery", "--like", "olmo2"), "is a family already"), (("other", "--like", "qwen2"), "shares qwen.cc"),
                                    (("other", "--like", "nothing"), "is no family"), (("New", "--like", "olmo2"), "small letters")):
                done = made(*arguments)
                self.assertEqual(done.returncode, 1)
                self.assertIn(part, done.stderr)


if __name__ == "__main__":
    unittest.main()
