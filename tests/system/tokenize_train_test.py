"""fovea tokenize --train and fovea train --tokenizer: training of tokenizers."""
import json
import os
import subprocess
import unittest

from support import SHARED, FoveaTest, fovea, needs_shared

PYTHON = os.environ.get("PEERS_PYTHON")

# Trains with Hugging Face's tokenizers on the same file and prints the model.
REFERENCE = """
import sys
from tokenizers import Tokenizer, models, pre_tokenizers, trainers
level = pre_tokenizers.ByteLevel(add_prefix_space=False)
tokenizer = Tokenizer(models.BPE())
tokenizer.pre_tokenizer = level
tokenizer.train([sys.argv[1]], trainers.BpeTrainer(vocab_size=5000, show_progress=False, special_tokens=["<|endoftext|>"],
                                                   initial_alphabet=level.alphabet()))
print(tokenizer.to_str())
"""


class TokenizeTrain(FoveaTest):
    def trained(self, kind, *more, size=300, name="tokenizer"):
        out = self.folder / name
        self.ok(fovea("tokenize", "--train", kind, "--vocab-size", size, self.text, "--out", out, *more))
        return out

    def test_each_kind_round_trips_the_text(self):
        line = self.text.read_text().splitlines()[0]
        for kind in ("bpe", "unigram", "char", "wordpiece"):
            with self.subTest(kind):
                out = self.trained(kind, name=kind)
                encoded = json.loads(self.ok(fovea("tokenize", out, input=line.encode())).stdout)
                decoded = self.ok(fovea("tokenize", out, "--decode", input=json.dumps(encoded["ids"]).encode())).stdout.decode()
                if kind != "wordpiece":  # which does not preserve spaces
                    self.assertEqual(decoded, line + "\n")
                self.assertLess(len(encoded["ids"]), len(line) + (kind == "char"))

    def test_the_number_of_threads_does_not_matter(self):
        for kind in ("bpe", "unigram", "wordpiece"):
            with self.subTest(kind):
                one, three = (self.trained(kind, "--threads", n, name=f"{kind}{n}") for n in (1, 3))
                self.assertEqual((one / "tokenizer.json").read_bytes(), (three / "tokenizer.json").read_bytes())

    def test_the_result_is_reported_as_json(self):
        done = self.ok(fovea("tokenize", "--train", "bpe", "--vocab-size", 300, self.text, self.text, "-o", self.folder / "new", "--json"))
        result = json.loads(done.stdout)
        self.assertLessEqual(result["tokens"], 300)
        self.assertEqual((result["bytes"], result["forgotten"]), (2 * self.text.stat().st_size, 0))

    def test_words_beyond_the_limit_are_dropped(self):
        text = self.file("numbers.txt", "".join(f"{i} often\n" for i in range(20000)))
        done = self.ok(fovea("tokenize", "--train", "bpe", "--vocab-size", 300, text, "--out", self.folder / "new", "--memory", "1M", "--json"))
        self.assertEqual(json.loads(done.stdout)["forgotten"], 1)
        self.assertIn(b"--memory", done.stderr)

    def test_invalid_requests_are_refused(self):
        out = self.folder / "out"
        train = ("tokenize", "--train", "bpe")
        self.refused(fovea(*train, "--out", out), 2, "FILE")
        self.refused(fovea(*train, self.text), 2, "--out")
        self.refused(fovea(*train, self.text, "--out", self.text), (1, 2), "text.txt")
        self.refused(fovea(*train, self.folder / "none", "--out", out), 2, "none")
        self.refused(fovea(*train, self.text, "--out", out, "--vocab-size", 100), 2, "--vocab-size", "257")
        self.assertFalse(out.exists())  # a refused run left an empty directory
        self.refused(fovea("tokenize", "--train", "what", self.text, "--out", out), 2, "--train")
        self.refused(fovea("tokenize", self.text, "--vocab-size", 10), 2, "--train")
        for content in (b"", b"\xff\xfe", b"\0" * 1000):
            with self.subTest(content[:4]):
                self.refused(fovea(*train, self.file("bad.txt", content), "--out", out), 2, "bad.txt")

    def test_a_model_contains_its_tokenizer(self):
        for choice in ("bpe:280", "unigram:60", "wordpiece:80", self.trained("bpe")):
            with self.subTest(str(choice)[:9]):
                out = self.folder / f"model {str(choice)[:3]} {len(str(choice))}"
                self.ok(self.train(out, "--tokenizer", choice, steps=6))
                self.ok(fovea("tokenize", out, input=b"the fox"))
                self.ok(fovea("generate", out, "-p", "the fox", "-n", 4))
                self.ok(fovea("eval", out, self.text))
                self.ok(self.train(out, "--tokenizer", choice, "--allow-change", steps=8))
        for choice in ("bpe:x", "bpe:", "bpe:0", "bpe:99999999999", "none", "bpe:5"):
            with self.subTest(choice):
                self.refused(self.train(self.folder / "new", "--tokenizer", choice), 2)

    @needs_shared
    @unittest.skipUnless(PYTHON, "needs PEERS_PYTHON, a Python with tokenizers")
    def test_bpe_agrees_with_hugging_face(self):
        text = SHARED / "data/tinyshakespeare.txt"
        out = self.folder / "new"
        self.ok(fovea("tokenize", "--train", "bpe", "--vocab-size", 5000, text, "--out", out))
        done = subprocess.run([PYTHON, "-c", REFERENCE, str(text)], stdout=subprocess.PIPE, text=True, check=True, timeout=200)
        expected, found = json.loads(done.stdout)["model"], json.loads((out / "tokenizer.json").read_text())["model"]
        self.assertEqual(found["vocab"], expected["vocab"])
        self.assertEqual(found["merges"], expected["merges"])


if __name__ == "__main__":
    unittest.main()
