"""transformers opens models saved by fovea without changes and computes the same results."""
import os
import pathlib
import subprocess
import unittest

from support import FOVEA, ROOT, FoveaTest

PYTHON = os.environ.get("PEERS_PYTHON")


@unittest.skipUnless(PYTHON, "needs PEERS_PYTHON, a Python with transformers")
class Transformers(FoveaTest):
    def test_a_trained_model_gives_the_same_ids_and_logits(self):
        done = subprocess.run([PYTHON, str(ROOT / "tools/compare/compare_logits.py"), str(self.model(steps=5)), "--fovea", FOVEA,
                               "--text", "The fox sees."], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False,
                              timeout=240, env={**os.environ, "HF_HUB_OFFLINE": "1"})
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr[-3000:])
        self.assertTrue(done.stdout.endswith("ok\n"), done.stdout)

    def test_written_directories_of_all_families_give_the_same_logits(self):
        """Converted, by way of a .gguf file, fine-tuned and merged with an adapter: each config.json and each tensor is taken."""
        done = subprocess.run([PYTHON, str(ROOT / "tools/compare/compare_written_directories.py"), "--fovea", FOVEA], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, check=False, timeout=900, env={**os.environ, "HF_HUB_OFFLINE": "1"})
        self.assertEqual(done.returncode, 0, done.stdout[-3000:] + done.stderr[-3000:])

    def test_chat_templates_give_the_same_ids_and_masks(self):
        program = pathlib.Path(FOVEA).parent / "tests/unit_tasks"
        if not program.is_file():
            self.skipTest(f"needs {program}")
        done = subprocess.run([PYTHON, str(ROOT / "tools/compare/compare_chat_templates.py"), str(program)], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              text=True, check=False, timeout=280, env={**os.environ, "HF_HUB_OFFLINE": "1"})
        self.assertEqual(done.returncode, 0, done.stdout[-3000:] + done.stderr[-3000:])


if __name__ == "__main__":
    unittest.main()
