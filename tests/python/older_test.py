"""The package for Python 3.10 and 3.11, over the C interface, which runs with later versions too."""

import os
import pathlib
import subprocess
import sys
import unittest

import numpy as np
from support import BUILD, CHATML, GOLDENS, ROOT, TestCase, documents, program, text_model

import fovea


class Older(TestCase):
    def run_code(self, code):
        environment = {**os.environ, "FOVEA_LIBRARY": str(BUILD / "libfovea.so.0"), "PYTHONPATH": str(ROOT / "python/older")}
        made = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, env=environment, check=False)
        self.assertEqual(made.returncode, 0, made.stderr)
        return made.stdout

    def test_texts_vectors_scores_and_traces_are_the_same(self):
        model = fovea.load(text_model(), chat_template=CHATML)
        out = self.folder() / "values.npz"
        printed = self.run_code(f"""
import fovea, numpy as np
model = fovea.load({text_model()!r}, chat_template={str(CHATML)!r})
print(repr(model.generate("The cat", max_tokens=20, seed=5)))
print(repr("".join(model.stream("The cat", max_tokens=20, seed=5))))
print(repr(model.chat([{{"role": "user", "content": "Hi"}}], max_tokens=8, temperature=0)["choices"][0]["message"]["content"]))
vectors = fovea.Encoder({str(GOLDENS / "sentence_model")!r}).encode(["two words", "a house"])
np.savez({str(out)!r}, vectors=vectors, logits=model.trace("The cat")["logits"], scores=model.score("The cat")[0])
""").splitlines()
        text = repr(model.generate("The cat", max_tokens=20, seed=5))
        self.assertEqual(printed[:2], [text, text])
        self.assertEqual(printed[2], repr(model.chat([{"role": "user", "content": "Hi"}], max_tokens=8, temperature=0)["choices"][0]["message"]["content"]))
        values = np.load(out)
        np.testing.assert_array_equal(values["vectors"], fovea.Encoder(GOLDENS / "sentence_model").encode(["two words", "a house"]))
        np.testing.assert_array_equal(values["logits"], model.trace("The cat")["logits"])
        np.testing.assert_array_equal(values["scores"].astype(np.float32), model.score("The cat")[0])

    def test_training_has_the_weights_of_the_command_line(self):
        data, out = self.folder() / "text.txt", self.folder()
        data.write_text("\n".join(documents()), encoding="utf-8")
        program("train", data, "--out", out / "a", "--preset", "tiny", "--steps", 3)
        self.run_code(f"import fovea; fovea.train({str(data)!r}, {str(out / 'b')!r}, preset='tiny', steps=3)")
        self.assertEqual((out / "a/model.safetensors").read_bytes(), pathlib.Path(out / "b/model.safetensors").read_bytes())

    def test_what_is_missing_says_what_to_install(self):
        printed = self.run_code("""
import fovea
for name in ("SearchIndex", "serve"):
    try:
        getattr(fovea, name)
    except AttributeError as error:
        print(error)
try:
    fovea.load("/nowhere")
except OSError as error:
    print(error)
""").splitlines()
        self.assertIn("needs Python 3.12 or later", printed[0])
        self.assertEqual(len(printed), 3)


if __name__ == "__main__":
    unittest.main()
