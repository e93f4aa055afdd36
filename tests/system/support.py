"""Support for the system tests: running the program, and generated small texts and models."""
import hashlib
import json
import os
import pathlib
import random
import shutil
import signal
import struct
import subprocess
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOVEA = os.environ.get("FOVEA_BIN", str(ROOT / "build/release/fovea"))
FOVEA = str(pathlib.Path(FOVEA).resolve())
SHARED = ROOT.parent / "shared"
# The build folder of some tests; without it, since the program would read it as the option --build.
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "FOVEA_BUILD"}
SOAK = os.environ.get("FOVEA_SOAK") == "1"

# A step takes a few milliseconds; dropout and accumulation are on, since a resume must preserve them too.
SMALL = ["--preset", "tiny", "--layers", "2", "--heads", "2", "--width", "32", "--context", "32", "--batch", "4",
         "--accumulate", "2", "--dropout", "0.1", "--evaluate-windows", "8", "--sample-every", "0", "--warmup", "5", "--seed", "7"]


def fovea(*arguments, timeout=120, env=None, **more):
    """Runs the program to its end, with bytes as input and output."""
    more.setdefault("stdin", subprocess.DEVNULL)
    if "input" in more:
        del more["stdin"]
    more.setdefault("stdout", subprocess.PIPE)
    return subprocess.run([FOVEA, *map(str, arguments)], stderr=subprocess.PIPE, timeout=timeout, check=False,
                          env={**ENVIRONMENT, **(env or {})}, **more)


def edit_json(path, changes):
    """Sets keys of a JSON file; None removes a key."""
    content = json.loads(path.read_text(encoding="utf-8"))
    for key, value in changes.items():
        content.pop(key, None) if value is None else content.update({key: value})
    path.write_text(json.dumps(content), encoding="utf-8")


def text_of(letters=20000, seed=1):
    """Returns generated sentences, the same on every machine."""
    generator = random.Random(seed)
    words = ["the", "eye", "of", "a", "fox", "sees", "what", "light", "falls", "on", "it", "and", "never", "sleeps"]
    text = ""
    while len(text) < letters:
        sentence = " ".join(generator.choice(words) for _ in range(generator.randint(4, 9)))
        text += sentence.capitalize() + generator.choice([".\n", ". ", "? "])
    return text[:letters]


def tensors(path):
    """Returns the float tensors of a .safetensors file as flat tuples, with their shapes."""
    content = path.read_bytes()
    length = struct.unpack("<Q", content[:8])[0]
    header = json.loads(content[8:8 + length])
    found = {}
    for name, entry in header.items():
        if name != "__metadata__" and entry["dtype"] == "F32":
            begin, end = (8 + length + offset for offset in entry["data_offsets"])
            found[name] = entry["shape"], struct.unpack(f"<{(end - begin) // 4}f", content[begin:end])
    return found


def digests(folder):
    """Returns the SHA-256 hash of every tensor file below a folder: weights, optimizer state, snapshots."""
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
            for path in sorted(pathlib.Path(folder).rglob("*.safetensors"))}


class FoveaTest(unittest.TestCase):
    """Provides each test with a temporary folder and with checks that apply to all errors."""

    def setUp(self):
        holder = tempfile.TemporaryDirectory(prefix="fovea test ")  # the space is intentional
        self.addCleanup(holder.cleanup)
        self.folder = pathlib.Path(holder.name)
        self.text = self.folder / "text.txt"
        self.text.write_text(text_of())

    def file(self, name, content):
        path = self.folder / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    def chatml_base(self):
        """Returns a model after two training steps, whose tokenizer has the special tokens of chatml."""
        out = self.folder / "base"
        self.ok(fovea("tokenize", "--train", "bpe", "--vocab-size", 300, "--special-token", "<|im_start|>", "--special-token", "<|im_end|>", self.text,
                      "--out", self.folder / "tokenizer"))
        self.ok(fovea("train", self.text, "--out", out, "--preset", "tiny", "--layers", 2, "--heads", 2, "--width", 32, "--batch", 1,
                      "--context", 128, "--tokenizer", self.folder / "tokenizer", "--steps", 2, "--sample-every", 0,
                      "--evaluate-windows", 1, "--seed", 7))
        return out

    def ok(self, result):
        self.assertEqual(result.returncode, 0, result.stderr.decode(errors="replace"))
        return result

    def refused(self, result, codes, *mentions):
        """Expects one line on standard error in the standard form, and one of the exit codes."""
        message = result.stderr.decode(errors="replace")
        codes = codes if isinstance(codes, tuple) else (codes,)
        self.assertIn(result.returncode, codes, message)
        lines = [line for line in message.splitlines() if line.startswith("fovea: error: ")]
        self.assertEqual(len(lines), 1, message)
        self.assertEqual(message.splitlines()[-1], lines[0], "the error is the last line")
        for mention in mentions:
            self.assertIn(str(mention), lines[0])

    def train(self, out, *more, steps=12, text=None, **how):
        return fovea("train", text or self.text, "--out", out, *SMALL, "--steps", steps, *more, **how)

    def model(self, steps=12):
        out = self.folder / "model"
        if not out.exists():
            self.ok(self.train(out, steps=steps))
        return out

    def check_resume(self, *options):
        """A run that is resumed from its snapshot gives the weights of an uninterrupted run. Returns the model's directory."""
        out = self.folder / "resumed"
        command = ("train", self.text, "--out", out, "--save-every", "3", *options)
        self.ok(fovea(*command))
        weights = (out / "model.safetensors").read_bytes()
        shutil.rmtree(out / "checkpoint-6")
        self.assertTrue((out / "checkpoint-3").is_dir())
        self.ok(fovea(*command))
        self.assertEqual((out / "model.safetensors").read_bytes(), weights)
        return out

    def check_commands(self, model):
        """Speculative tokens do not change the text; `eval`, `plan` and `trace` accept the model. Returns spec, plan and trace."""
        greedy = ("generate", model, "-p", "In the", "-n", "40", "--temperature", "0")
        text = self.ok(fovea(*greedy)).stdout
        for proposal in ("0", "4"):  # the default is auto
            self.assertEqual(self.ok(fovea(*greedy, "--speculative-tokens", proposal)).stdout, text)
        self.ok(fovea("eval", model, self.text))
        plan = json.loads(self.ok(fovea("plan", model, "--json")).stdout)
        out = self.folder / "trace.safetensors"
        self.ok(fovea("trace", model, "--text", "In the", "--out", out, "--gradients"))
        return json.loads((model / "config.json").read_text())["spec"], plan, out.read_bytes()

    def start(self, *arguments):
        process = subprocess.Popen([FOVEA, *map(str, arguments)], env=ENVIRONMENT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.stderr.close)
        self.addCleanup(lambda: process.poll() is None and (process.kill(), process.wait()))
        return process

    def wait_for(self, process, mark, seconds=60):
        """Reads standard error until a line contains `mark`; returns the text."""
        seen, end = "", time.monotonic() + seconds
        while mark not in seen:
            line = process.stderr.readline()
            self.assertTrue(line, f"ended before {mark!r}:\n{seen}")
            self.assertLess(time.monotonic(), end, seen)
            seen += line
        return seen

    def end(self, process, with_signal=signal.SIGINT):
        process.send_signal(with_signal)
        rest = process.stderr.read()
        return process.wait(timeout=60), rest


def needs_shared(test):
    return unittest.skipUnless(SHARED.is_dir(), "needs the fixtures in ../shared")(test)
