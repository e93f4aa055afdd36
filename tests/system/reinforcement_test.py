"""Reinforcement learning: the options, the log, the errors, and a kill at any moment."""
import json
import signal
import subprocess
import time
import unittest

from support import FOVEA, FoveaTest, fovea


class Reinforcement(FoveaTest):
    def base(self):
        out = self.folder / "base"
        self.ok(fovea("tokenize", "--train", "bpe", "--vocab-size", 257, self.text, "--out", self.folder / "tokenizer"))
        self.ok(fovea("train", self.text, "--out", out, "--preset", "tiny", "--layers", 1, "--heads", 2, "--width", 16, "--batch", 1,
                      "--context", 32, "--tokenizer", self.folder / "tokenizer", "--steps", 2, "--sample-tokens", 0, "--seed", 7))
        return out

    def prompts(self):
        return self.file("prompts.jsonl", "".join(json.dumps({"prompt": f"{i}+1=", "answer": str(i + 1)}) + "\n" for i in range(9)))

    def options(self, out):
        return ("train", self.prompts(), "--from", self.folder / "base", "--out", self.folder / out, "--prompts", 2, "--generations", 3,
                "--answer-tokens", 6, "--batch", 4, "--steps", 6, "--batch-epochs", 2, "--dtype", "fp32", "--validation", "0.25",
                "--reward", "exact", "0.5*regex:[0-9]", "--save-every", 1, "--json")

    def test_both_objectives_log_rewards(self):
        self.base()
        for objective in ("grpo", "ppo"):
            result = json.loads(self.ok(fovea(*self.options(objective), "--objective", objective)).stdout)
            self.assertEqual(result["steps"], 6)
            self.assertIn("reward", result)
            log = [json.loads(line) for line in (self.folder / objective / "log.jsonl").read_text().splitlines()]
            steps = [entry for entry in log if "loss" in entry]
            self.assertEqual([entry["step"] for entry in steps if "reward_exact" in entry], [1, 3, 5])
            self.assertTrue(all(entry["update_kl"] == 0 for entry in steps if entry["step"] in (1, 3, 5)))
            self.assertLessEqual({0, 6}, {entry["step"] for entry in log if "sample" in entry})
            self.assertTrue(any(entry["step"] == 0 and "reward" in entry for entry in log))

    def test_a_killed_run_continues_with_the_same_bits(self):
        self.base()
        once, killed = self.options("once"), self.options("killed")
        self.ok(fovea(*once, "--objective", "grpo"))
        for _ in range(20):
            process = subprocess.Popen([FOVEA, *map(str, killed), "--objective", "grpo"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            time.sleep(0.15)
            process.send_signal(signal.SIGKILL)
            process.wait()
        self.ok(fovea(*killed, "--objective", "grpo"))
        for name in ("once", "killed"):
            self.assertTrue((self.folder / name / "model.safetensors").exists())
        self.assertEqual((self.folder / "once/model.safetensors").read_bytes(), (self.folder / "killed/model.safetensors").read_bytes())

    def test_programs_and_their_errors(self):
        self.base()
        command = self.options("command")
        command = command[:command.index("--reward")] + ("--save-every", 1, "--objective", "grpo")
        self.ok(fovea(*command, "--reward-command", "while read line; do echo 1; done"))
        failed = fovea(*self.options("failed"), "--objective", "grpo", "--reward-command", "echo oops")
        self.assertEqual(failed.returncode, 1)
        self.assertIn(b'--reward-command: echo oops: line 1 of its output is "oops"; expected a number', failed.stderr)

    def test_the_plan_counts_the_keys_and_values_of_answers(self):
        base, out = self.folder / "base", self.folder / "out"
        self.ok(fovea("train", self.text, "--out", base, "--preset", "tiny", "--layers", 4, "--heads", 2, "--width", 128, "--context", 256, "--batch", 1,
                      "--steps", 1, "--sample-tokens", 0))  # without an end token, so all answers are long
        result = json.loads(self.ok(fovea("train", self.file("prompts.jsonl", '{"prompt": "the"}\n'), "--from", base, "--out", out, "--objective", "grpo",
                                          "--reward", "length:0-9", "--prompts", 16, "--generations", 16, "--answer-tokens", 180, "--batch", 4, "--steps", 1,
                                          "--validation", 0, "--json")).stdout)
        self.assertGreater(result["peak_bytes"], 180 << 20)
        self.assertLess(abs(result["planned_bytes"] / result["peak_bytes"] - 1), 0.2, result)

    def test_an_encoder_decoder_learns_and_shows_its_prompt(self):
        pairs = self.file("pairs.tsv", "".join(f"{i} + 1\t{i + 1}\n" for i in range(20)))
        base = self.folder / "base"
        self.ok(fovea("train", "--pairs", pairs, "--out", base, "--preset", "translate-tiny", "--layers", 1, "--heads", 2, "--width", 16, "--context", 32,
                      "--tokenizer", "bpe:270", "--steps", 2, "--validation", 0))
        for objective in ("grpo", "ppo"):
            result = json.loads(self.ok(fovea(*self.options(objective), "--objective", objective)).stdout)
            self.assertEqual(result["steps"], 6)
        shown = json.loads(self.ok(fovea("train", self.prompts(), "--from", base, "--objective", "grpo", "--show-example", "--json")).stdout)
        self.assertEqual(shown["parts"][0]["trained"], False)
        self.assertIn("0+1=", shown["parts"][0]["text"].replace(" ", ""))
        self.ok(fovea("translate", self.folder / "grpo", input=b"1 + 1\n"))

    def test_errors_name_the_option(self):
        self.base()
        for options, message in (
                (("--objective", "grpo", "--generations", 1), b"--generations: 1; expected at least 2"),
                (("--objective", "grpo", "--reward", "exakt"), b"--reward: exakt is unknown"),
                (("--objective", "chats"), b"has no effect in this run; expected --objective ppo or grpo"),
                (("--objective", "grpo", "--length", 16), b"--length: has no effect in this run"),
                (("--objective", "ppo", "--document-mask"), b"--document-mask: has no effect in this run"),
                (("--objective", "grpo", "--accumulate", 2), b"--accumulate: 2; expected 1")):
            found = fovea(*self.options("refused"), *options)
            self.assertNotEqual(found.returncode, 0)
            self.assertIn(message, found.stderr)
            self.assertFalse((self.folder / "refused").exists())


if __name__ == "__main__":
    unittest.main()
