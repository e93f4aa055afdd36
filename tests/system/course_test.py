"""The course: each command runs and prints what the chapter says, and the numbers of the text are right."""
import json
import math
import os
import pathlib
import re
import subprocess
import tempfile
import unittest

from support import ENVIRONMENT, FOVEA, ROOT, fovea

CHAPTERS = sorted((ROOT / "docs/course").glob("[0-9]*.md"))
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def softmax(scores):
    exps = [math.exp(x) for x in scores]
    return [x / sum(exps) for x in exps]


# What the chapters claim, computed here: a part of the text, and the numbers in it.
FIRST = softmax([1 / math.sqrt(3), 1 / math.sqrt(3), 2 / math.sqrt(3)])
CLAIMS = [
    ("01", "passes its state on {} times", [50 - 1]),
    ("03", "Divided by √3 = {:.3f}: {:.3f}, {:.3f} and {:.3f}", [math.sqrt(3), 1 / math.sqrt(3), 1 / math.sqrt(3), 2 / math.sqrt(3)]),
    ("03", "row by row: {:.3f}, {:.3f} and {:.3f}", FIRST),
    ("03", "= ({:.3f}, {:.3f}).", [FIRST[0] + 3 * FIRST[1], 2 * FIRST[0] + FIRST[2]]),
    ("05", "of a model of width 512 are {} wide each", [512 // 8]),
    ("06", "from {:.2f} positions", [2 * math.pi]),
    ("08", "becomes (−{0:.4f}, 0, {0:.4f})", [1 / math.sqrt(2 / 3)]),
    ("12", "about {:.0f} million |\n| the embedding", [12 * 12 * 768**2 / 1e6]),
    ("12", "about {:.0f} million |\n\n", [50257 * 768 / 1e6]),
    ("12", "has {:,} times as\nmany pairs", [(100000 // 1000)**2]),
]


class Course(unittest.TestCase):
    def test_commands_print_what_the_chapters_say(self):
        with tempfile.TemporaryDirectory() as place:
            # The commands of all chapters share a directory, as those of a reader do.
            path = os.pathsep.join([str(pathlib.Path(FOVEA).parent), ENVIRONMENT["PATH"]])
            for chapter in CHAPTERS:
                blocks = BLOCK.findall(chapter.read_text(encoding="utf-8"))
                for i, (language, command) in enumerate(blocks):
                    if language != "sh":
                        continue
                    with self.subTest(chapter=chapter.name, command=command):
                        done = subprocess.run(["bash", "-e", "-o", "pipefail", "-c", command], cwd=place, env={**ENVIRONMENT, "PATH": path, "COLUMNS": "100"},
                                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=200, check=False)
                        self.assertEqual(done.returncode, 0, done.stderr)
                        if i + 1 < len(blocks) and blocks[i + 1][0] == "text":
                            self.assertEqual(done.stdout, blocks[i + 1][1])

    def test_numbers_of_the_text_are_right(self):
        for number, words, values in CLAIMS:
            chapter, = (each for each in CHAPTERS if each.name.startswith(number))
            with self.subTest(chapter=chapter.name, words=words):
                self.assertIn(words.format(*values), chapter.read_text(encoding="utf-8"))

    def test_each_chapter_ends_with_a_question_and_shows_a_view(self):
        self.assertGreaterEqual(len(CHAPTERS), 12)
        for chapter in CHAPTERS:
            languages = [language for language, _ in BLOCK.findall(chapter.read_text(encoding="utf-8"))]
            self.assertEqual(languages[-1], "question", chapter.name)
            self.assertIn("view", languages, chapter.name)

    def test_links_have_targets(self):
        for page in (ROOT / "docs/course").glob("*.md"):
            for target in re.findall(r"\]\(([^)#]+)\)", page.read_text(encoding="utf-8")):
                self.assertTrue((page.parent / target).exists(), f"{page.name} links to {target}")

    def test_model_is_small_and_not_overwritten(self):
        with tempfile.TemporaryDirectory() as place:
            out = pathlib.Path(place) / "model"
            self.assertEqual(fovea("learn", "--out", out).returncode, 0)
            self.assertLess(sum(file.stat().st_size for file in out.iterdir()), 3e6)
            again = fovea("learn", "--out", out)
            self.assertEqual(again.returncode, 2)
            self.assertIn(b"exists; expected a new directory", again.stderr)


class Check(unittest.TestCase):
    def check(self, text, code):
        with tempfile.TemporaryDirectory() as place:
            file = pathlib.Path(place) / "mine.json"
            file.write_text(text, encoding="utf-8")
            done = fovea("check", file)
        self.assertEqual(done.returncode, code, done.stderr)
        return (done.stdout + done.stderr).decode()

    def test_mistakes_are_named(self):
        self.assertIn("over the queries", self.check('{"weights": [[0.5, 0.5, 0.760], [0.5, 0.5, 0.240]]}', 1))
        self.assertIn("the mask is not applied", self.check('{"causal": true, "K": [[1, 0], [0, 1]], "Q": [[1, 0], [0, 1]], "V": [[1], [2]], "weights": [[0.6698, 0.3302], [0.3302, 0.6698]]}', 1))
        self.assertIn("has shape [3]; expected 2 axes", self.check('{"weights": [1, 2, 3]}', 2))

    def test_three_tokens_by_four_heads(self):
        one = [[1.0 if i == j else 0.0 for j in range(8)] for i in range(8)]
        heads = [[row[2 * h:2 * h + 2] for row in one] for h in range(4)]
        x = [[1, 0, 1, 0, 1, 0, 1, 0], [0, 1, 0, 1, 0, 1, 0, 1], [1, 1, 0, 0, 0, 0, 1, 1]]
        file = {"X": x, "W_Q": heads, "W_K": heads, "W_V": heads, "W_O": one, "queries": [[row[2 * h:2 * h + 2] for row in x] for h in range(4)]}
        self.assertIn("ok    queries      [4, 3, 2]", self.check(json.dumps(file), 0))
        file["output"] = x
        self.assertIn("WRONG output", self.check(json.dumps(file), 1))

    def test_bad_files_get_one_line(self):
        for text, words in [("[1]", "expected arrays by name"), ("{", "mine.json"), ('{"Q": [[1], [1, 2]]}', "rows differ in length"), ('{"Q": []}', "empty list"),
                            ('{"X": [[1]]}', "W_Q: not given"), ('{"Q": [["a"]]}', "expected numbers"), ("{}", "none of the steps"), ('{"causal": 3}', "true or false")]:
            shown = self.check(text, 2)
            self.assertIn(words, shown, text)
            self.assertEqual(shown.strip().count("\n"), 0, shown)


if __name__ == "__main__":
    unittest.main()
