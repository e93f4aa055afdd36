"""The memory that `train` plans, compared with the peak of the run, for each objective and way to hold the weights."""
import json
import random
import sys
import unittest

from memory_test import SANITIZED, folder_with_llama
from support import FoveaTest, fovea

WORDS = "the eye of a fox sees what light falls on it and never sleeps".split()
MOST = 0.3  # on other CPUs, whose products use other temporary memory: 0.5

TEXT = ["text.txt", "--batch", 4, "--length", 256, "--evaluate-windows", 2]
CHATS = ["chats.jsonl", "--batch", 4, "--length", 256]
PAIRS = ["pairs.jsonl", "--batch", 8]
WRITING = ["prompts.jsonl", "--reward", "length:1-30", "--prompts", 4, "--generations", 4, "--answer-tokens", 48, "--batch", 8, "--evaluation-prompts", 2]
LORA = ["--lora", 16]
RUNS = {
    "text": TEXT, "text, layers computed again": [*TEXT, "--recompute"], "text, half of the layers computed again": [*TEXT, "--recompute", 3],
    "text, moments of 8 bits": [*TEXT, "--moments", "8bit"], "text, fp32": [*TEXT, "--dtype", "fp32"],
    "chats": CHATS, "chats, passes": [*CHATS, "--accumulate", 3],
    "adapters": [*TEXT, *LORA], "adapters over int4": [*TEXT, *LORA, "--lora-base", "int4"], "DoRA": [*TEXT, *LORA, "--dora"],
    "adapters, layers computed again": [*TEXT, *LORA, "--recompute"], "adapters, dropout": [*CHATS, *LORA, "--lora-dropout", "0.1"],
    "dpo": [*PAIRS, "--objective", "dpo"], "dpo, adapters": [*PAIRS, "--objective", "dpo", *LORA], "kto": [*PAIRS, "--objective", "kto"],
    "reward": [*PAIRS, "--objective", "reward"], "reward, adapters": [*PAIRS, "--objective", "reward", *LORA],
    "grpo": [*WRITING, "--objective", "grpo"], "grpo, adapters": [*WRITING, "--objective", "grpo", *LORA],
    "grpo, reference": [*WRITING, "--objective", "grpo", "--kl-weight", "0.05"], "ppo": [*WRITING, "--objective", "ppo"],
}


def lines(records):
    return "".join(json.dumps(record) + "\n" for record in records)


@unittest.skipIf(SANITIZED, "sanitizers take memory")
class PlannedMemory(FoveaTest):
    @classmethod
    def setUpClass(cls):
        cls.data = folder_with_llama(cls, layers=6, width=320, heads=5, kv_heads=5, ffn=896, vocabulary=8192, context=512)
        generator = random.Random(1)

        def text(words):
            return " ".join(generator.choice(WORDS) for _ in range(words))

        (cls.data / "text.txt").write_text("\n".join(text(12) for _ in range(1500)))
        (cls.data / "chats.jsonl").write_text(lines({"messages": [{"role": "user", "content": text(20)}, {"role": "assistant", "content": text(40)}]}
                                                    for _ in range(60)))
        (cls.data / "pairs.jsonl").write_text(lines({"prompt": text(30), "chosen": text(40), "rejected": text(40)} for _ in range(24)))
        (cls.data / "prompts.jsonl").write_text(lines({"prompt": text(20)} for _ in range(12)))

    def test_the_peak_is_as_planned(self):
        self.ok(fovea("tokenize", "--train", "bpe", "--vocab-size", 400, "--special-token", "<|im_start|>", "--special-token", "<|im_end|>",
                      self.data / "text.txt", "--out", self.folder / "tokenizer"))
        for name, (data, *options) in RUNS.items():
            precision = [] if "--dtype" in options else ["--dtype", "bf16"]
            template = ["--chat-template", "chatml"] if data == "chats.jsonl" else []
            result = json.loads(self.ok(fovea("train", self.data / data, *options, *precision, *template, "--from", self.data / "model", "--tokenizer",
                                              self.folder / "tokenizer", "--out", self.folder / name, "--steps", 2, "--warmup", 1, "--sample-tokens", 0,
                                              "--json")).stdout)
            planned, peak = result["planned_bytes"], result["peak_bytes"]
            print(f"{name}: planned {planned >> 20}, peak {peak >> 20} MB", file=sys.stderr)
            with self.subTest(name):
                self.assertLess(abs(planned / peak - 1), MOST if result["isa"] == "avx512-bf16" else 0.5, f"{planned} planned, {peak} measured")


if __name__ == "__main__":
    unittest.main()
