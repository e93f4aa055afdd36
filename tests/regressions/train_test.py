"""Runs that were resumed with other options than requested, could not be resumed, or took more memory than planned."""
import unittest

from support import FoveaTest, digests, fovea


class Train(FoveaTest):
    def test_another_tokenizer_is_refused(self):
        """A resumed run reads the tokenizer from its folder and silently ignored a different --tokenizer."""
        out = self.folder / "out"
        self.ok(self.train(out, steps=8))
        self.refused(self.train(out, "--tokenizer", "bpe:300", steps=8), 2, "tokenizer was", "char", "bpe:300", "--allow-change")
        self.ok(self.train(out, "--tokenizer", "bpe:300", "--allow-change", steps=8))
        self.ok(self.train(out, steps=8))

    def test_a_model_with_stored_sinusoids_is_resumed(self):
        """A run with --position sinusoidal --stored-waves true could not be resumed: a snapshot contains only trained parameters, and the
        missing sinusoids were refused."""
        out, whole = self.folder / "out", self.folder / "whole"
        waves = ["--position", "sinusoidal", "--stored-waves", "true", "--schedule", "constant"]
        self.ok(self.train(whole, *waves, steps=20))
        self.ok(self.train(out, *waves, steps=12))
        self.ok(self.train(out, *waves, "--allow-change", steps=20))
        last = "checkpoint-20/state.safetensors"
        self.assertEqual(digests(out)[last], digests(whole)[last])
        self.ok(fovea("generate", out, "-p", "The", "-n", "5"))

    def test_a_run_that_exceeds_the_memory_is_refused(self):
        """The plan omitted the memory of the process itself: a run that takes 46 MB was planned with 1 MB, and started."""
        out = self.folder / "out"
        for dtype in ("fp32", "bf16"):
            self.refused(self.train(out, "--memory-limit", "1M", "--dtype", dtype), 3, "memory")
        self.assertFalse(any(out.rglob("*")) if out.exists() else False)
        self.refused(fovea("train", self.text, "--dry-run", "--width", "1048576", "--layers", "512", "--heads", "8192"), (2, 3))

    def test_names_of_special_tokens_are_reported_once(self):
        """Names of special tokens in a training text, such as <|im_start|>, were silently treated as plain text."""
        found = "<|im_start|> (40 times), </s> (once)"
        text = self.file("chat.txt", "<|im_start|>user the quick brown fox\n" * 40 + "</s>")
        done = self.ok(fovea("tokenize", "--train", "bpe", "--vocab-size", 300, text, "--out", self.folder / "new"))
        self.assertEqual(done.stderr.decode().count(found), 1, done.stderr)
        for choice in ("char", "bpe:300"):
            with self.subTest(choice):
                out = self.folder / f"model {choice[:3]}"
                done = self.ok(self.train(out, "--tokenizer", choice, text=text))
                self.assertEqual(done.stderr.decode().count(found), 1, done.stderr)
        done = self.ok(fovea("train", text, "--from", out, "--out", self.folder / "tuned", "--steps", 2, "--length", 16))
        self.assertEqual(done.stderr.decode().count(found), 1, done.stderr)
        self.assertNotIn("special tokens", self.ok(self.train(self.folder / "plain")).stderr.decode())


if __name__ == "__main__":
    unittest.main()
