"""What the tests of the Python package share."""

import fcntl
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
GOLDENS = ROOT / "tests/goldens"
BUILD = pathlib.Path(os.environ.get("FOVEA_BUILD", ROOT / "build/release"))
PROGRAM = os.environ.get("FOVEA_BIN", str(BUILD / "fovea"))
CHATML = GOLDENS / "chat_templates/chatml.jinja"


def program(*arguments):
    """Returns what the program prints."""
    made = subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True, check=False)
    if made.returncode != 0:
        raise AssertionError(made.stderr)
    return made.stdout


def python(code, **options):
    """Runs code in a new process, and returns what it prints."""
    made = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=120, **options)
    if made.returncode != 0:
        raise AssertionError(made.stderr)
    return made.stdout


def documents():
    """Texts with words that a small model learns at once."""
    animals = ["cat", "dog", "cow", "hen", "fox", "owl"]
    return [f"The {one} sees the {other} and the {one} runs away from the {other}." for one in animals for other in animals] * 4


def text_model():
    """Returns the folder of a small decoder with an end-of-text token, which the first test trains."""
    folder = BUILD / "python-tests"
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / "lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        model = folder / "model"
        if not (model / "model.safetensors").exists():
            data = folder / "data.jsonl"
            data.write_text("".join(json.dumps({"text": text}) + "\n" for text in documents()), encoding="utf-8")
            program("train", data, "--out", model, "--preset", "tiny", "--steps", 60, "--tokenizer", "bpe:320", "--context", 128, "--seed", 1)
    return str(model)


class TestCase(unittest.TestCase):
    def folder(self):
        made = tempfile.TemporaryDirectory()
        self.addCleanup(made.cleanup)
        return pathlib.Path(made.name)
