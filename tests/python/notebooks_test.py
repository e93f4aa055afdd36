"""The notebooks and the examples run."""

import ast
import json
import subprocess
import sys
import unittest

from support import ROOT, TestCase, documents, text_model

BOOKS = ROOT / "docs/python/notebooks"


class Notebooks(TestCase):
    def results(self, name):
        """Runs the cells, and returns the value of the last line of each."""
        scope, values = {}, []
        for cell in json.loads((BOOKS / f"{name}.ipynb").read_text(encoding="utf-8"))["cells"]:
            if cell["cell_type"] != "code":
                continue
            tree = ast.parse("".join(cell["source"]))
            last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
            exec(compile(tree, name, "exec"), scope)
            values.append(eval(compile(ast.Expression(last.value), name, "eval"), scope) if last else None)
        return values

    def test_train_and_sample(self):
        *_, samples, scores = self.results("train_and_sample")
        self.assertEqual(len(samples), 5)
        self.assertGreater(scores[-1][1], -3)

    def test_fine_tune_and_serve(self):
        _, message, served = self.results("fine_tune_and_serve")
        self.assertEqual(message, served)

    def test_look_inside(self):
        values = self.results("look_inside")
        self.assertIn("<table", values[2]._repr_html_())
        self.assertIn("<span", values[-1]._repr_html_())
        self.assertGreater(values[-2], 0)

    def example(self, name, *arguments):
        made = subprocess.run([sys.executable, ROOT / "python/examples" / name, *map(str, arguments)], capture_output=True, text=True, check=False)
        self.assertEqual(made.returncode, 0, made.stderr)
        return made.stdout

    def test_examples(self):
        text = self.folder() / "text.txt"
        text.write_text("\n".join(documents()), encoding="utf-8")
        self.assertGreater(len(self.example("gpt.py", text, 20)), 100)
        self.assertLess(float(self.example("own_layer.py").split()[-1]), 0.01)
        self.assertIn("cross-entropy", self.example("own_loss.py", text, self.folder() / "run", 5))
        self.assertEqual(len(self.example("heads.py", text_model(), "The cat sees").splitlines()), 4)


if __name__ == "__main__":
    unittest.main()
