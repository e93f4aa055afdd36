"""Names of models of the Hugging Face Hub, on a local server with its routes."""

import importlib.util
import os
import pathlib
import sys
import unittest
from unittest import mock

from support import ROOT, TestCase, python, text_model

import fovea

sys.path.append(str(ROOT / "tests/system"))
import hub_server


class HubNames(TestCase):
    def setUp(self):
        files = {path.name: path for path in pathlib.Path(text_model()).iterdir() if path.is_file()}
        self.hub = hub_server.Hub({"you/small": hub_server.Repository({**files, "pytorch_model.bin": b"pickle"})})
        self.addCleanup(self.hub.close)
        self.home = self.folder()
        self.variables = {"HF_ENDPOINT": self.hub.address, "HF_HOME": str(self.home), "HF_TOKEN": "", "HF_HUB_OFFLINE": "", "no_proxy": "*"}

    @unittest.skipUnless(importlib.util.find_spec("huggingface_hub"), "no huggingface_hub")
    def test_a_name_is_fetched_by_huggingface_hub_and_then_found(self):
        code = "import fovea; model = fovea.load('you/small'); print(model.path); print(model.generate('The', max_tokens=3, temperature=0))"
        path, text = python(code, env={**os.environ, **self.variables}).splitlines()[:2]
        self.assertTrue(path.startswith(str(self.home)), path)
        self.assertFalse(list(self.home.rglob("*.bin")))
        self.assertIn(text, fovea.load(text_model()).generate("The", max_tokens=3, temperature=0))
        self.hub.close()
        self.assertEqual(python(code, env={**os.environ, **self.variables}).splitlines()[0], path)

    def test_without_huggingface_hub_one_line_says_what_to_do(self):
        with mock.patch.dict(os.environ, self.variables), mock.patch.dict(sys.modules, {"huggingface_hub": None}):
            with self.assertRaisesRegex(OSError, "^you/small: .*pip install huggingface_hub"):
                fovea.load("you/small")


if __name__ == "__main__":
    unittest.main()
