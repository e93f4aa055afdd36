"""Fine-tuning that destroyed a model, trained what others do not train, or could not begin with an adapter."""
import json
import math
import struct
import unittest

from support import ROOT, FoveaTest, fovea, tensors

MARIAN = ROOT / "tests/goldens/ctranslate2/translation_model"
SENTENCES = ROOT / "tests/goldens/sentence_model"


def log_of(out, key):
    return [line for line in map(json.loads, (out / "log.jsonl").read_text().splitlines()) if key in line]


def numbers_of(folder, name):
    """Returns the elements of a tensor in fp16 or fp32."""
    content = (folder / "model.safetensors").read_bytes()
    length = struct.unpack("<Q", content[:8])[0]
    entry = json.loads(content[8:8 + length])[name]
    begin, end = (8 + length + offset for offset in entry["data_offsets"])
    size, letter = {"F16": (2, "e"), "F32": (4, "f")}[entry["dtype"]]
    return struct.unpack(f"<{(end - begin) // size}{letter}", content[begin:end])


class FineTuning(FoveaTest):
    def base(self):
        """A model that has learned the text."""
        out = self.folder / "base"
        if not out.exists():
            self.ok(self.train(out, "--accumulate", 1, "--dropout", 0, "--lr", "0.01", steps=150))
        return out

    def tune(self, out, *more, text=None):
        return fovea("train", text or self.text, "--from", self.base(), "--out", self.folder / out, "--batch", 4, "--sample-every", 0, *more)

    def test_the_default_rate_suits_what_is_trained(self):
        """Fine-tuning began at the rate of pre-training, 0.003, which no plan told: the loss of a chat model rose from 2.8 to 8.5."""
        rates = {}
        for name, more in (("all", ()), ("lora", ("--lora", 4))):
            plan = json.loads(self.ok(self.tune("dry", "--dry-run", "--json", *more)).stdout)
            rates[name] = plan["learning_rate"]
            self.assertIn("fine-tuning of", plan["learning_rate_reason"])
            self.assertAlmostEqual(plan["epochs"], 3, delta=0.1)
        self.assertEqual(rates, {"all": 2e-5, "lora": 2e-4})
        shown = self.ok(self.tune("dry", "--dry-run")).stdout.decode()
        self.assertIn("rate        2e-05 (fine-tuning of all weights on text); cosine to 2e-06, warm-up of", shown)
        given = json.loads(self.ok(self.tune("dry", "--dry-run", "--json", "--lr", "0.5", "--steps", 7)).stdout)
        self.assertEqual((given["learning_rate"], given["learning_rate_reason"], given["steps"]), (0.5, "", 7))
        self.ok(self.tune("tuned", "--steps", 20))
        start, *rest = log_of(self.folder / "tuned", "eval_loss")
        self.assertEqual(start["step"], 0)
        self.assertLessEqual(rest[-1]["eval_loss"], start["eval_loss"])

    def test_a_run_that_ends_worse_keeps_the_initial_weights(self):
        """A run that ended worse than it began wrote the worse model."""
        done = self.ok(self.tune("worse", "--steps", 30, "--lr", "0.3", "--json"))
        self.assertIn("the run ends worse than it began (loss ", done.stderr.decode())
        self.assertRegex(json.loads(done.stdout)["kept_start"], r"loss \d\.\d+ before, \d+\.\d+ after")
        before, after = (tensors(folder / "model.safetensors") for folder in (self.base(), self.folder / "worse"))
        self.assertEqual(before, after)
        again = self.ok(self.tune("worse", "--steps", 30, "--lr", "0.3", "--json"))
        self.assertIn("kept_start", json.loads(again.stdout))

    def test_an_embedder_that_ends_worse_is_not_written(self):
        """A run of `embed --train` went from 93.34 to 92.30, said so and wrote the worse model."""
        words = ["fox", "eye", "light", "bird"]
        scored = self.file("dev.csv", "sentence1,sentence2,score\n" + "".join(f"the {w},a {v},{5 if w == v else 0}\n" for w in words for v in words))
        reversed_scores = self.file("train.csv", "sentence1,sentence2,score\n" + "".join(f"the {w},a {v},{0 if w == v else 5}\n" for w in words for v in words))
        out = self.folder / "out"
        done = self.ok(fovea("embed", SENTENCES, "--train", reversed_scores, "--validation", scored, "--out", out, "--lr", "0.01", "--epochs", 20))
        self.assertIn("the run ends worse than it began (spearman ", done.stdout.decode())
        self.assertNotIn("writing a sample", done.stderr.decode())
        measured = [json.loads(self.ok(fovea("embed", model, "--evaluate", scored, "--json")).stdout)["spearman"] for model in (SENTENCES, out)]
        self.assertAlmostEqual(measured[0], measured[1], places=3)

    def test_a_run_that_diverges_stops(self):
        out = self.folder / "diverged"
        options = ("--steps", 220, "--lr", "2", "--warmup", 60, "--schedule", "constant", "--validation", 0, "--dtype", "fp32")
        self.refused(self.tune(out, *options), 1, "--learning-rate: 2: the run diverges", "checkpoint-", "--keep-going")
        stopped = max(int(path.name.split("-")[1]) for path in out.glob("checkpoint-*"))
        self.assertLess(stopped, 220)
        self.refused(self.tune(out, *options), 1, "the run diverges")
        self.ok(self.tune(out, *options, "--keep-going"))

    def test_an_adapter_is_trained_further(self):
        """An adapter was refused as the start of a run; it had to be merged into a model first."""
        first, merged = self.folder / "first", self.folder / "merged"
        self.ok(self.tune(first, "--lora", 4, "--lr", "0.02", "--steps", 20))
        self.ok(fovea("convert", self.base(), merged, "--adapter", first))
        def losses(out, start, *more):
            self.ok(fovea("train", self.text, "--from", start, "--out", self.folder / out, "--batch", 4, "--sample-every", 0, "--dtype", "fp32", *more))
            return [line["loss"] for line in log_of(self.folder / out, "loss")]
        further = losses("further", first, "--steps", 12, "--lr", "0.02")
        self.assertAlmostEqual(further[0], losses("merged-further", merged, "--steps", 1)[0], places=4)
        self.assertLess(abs(further[0] - losses("new", self.base(), "--lora", 4, "--steps", 12)[0]), 5)
        config = [json.loads((folder / "adapter_config.json").read_text()) for folder in (first, self.folder / "further")]
        for key in ("r", "lora_alpha", "target_modules", "base_model_name_or_path", "rank_pattern"):
            self.assertEqual(config[0].get(key), config[1].get(key), key)
        shapes = [{name: shape for name, (shape, _) in tensors(folder / "adapter_model.safetensors").items()} for folder in (first, self.folder / "further")]
        self.assertEqual(*shapes)
        self.refused(fovea("train", self.text, "--from", first, "--out", self.folder / "other", "--lora", 8), 2, "--lora: 8; expected 4")
        self.refused(fovea("train", self.text, "--from", first, "--out", self.folder / "other", "--dora"), 2, "--dora")
        again = losses("further", first, "--steps", 12, "--lr", "0.02")  # the finished run
        self.assertEqual(again, further)

    def test_the_reference_of_an_adapter_is_its_base(self):
        """As in TRL, DPO that begins with an adapter compares with the base, so that its first margin is not 0."""
        base = self.chatml_base()
        pairs = self.file("pairs.jsonl", "".join(json.dumps({"prompt": f"What is {i}? ", "chosen": "a fox", "rejected": "nothing at all"}) + "\n" for i in range(12)))
        options = ("--objective", "dpo", "--batch", 4, "--validation", 0, "--dtype", "fp32", "--sample-tokens", 0)
        first, further = self.folder / "first", self.folder / "further"
        self.ok(fovea("train", pairs, "--from", base, "--out", first, "--lora", 4, "--lr", "0.02", "--steps", 12, *options))
        self.ok(fovea("train", pairs, "--from", first, "--out", further, "--steps", 2, *options))
        ends, begins = log_of(first, "margin"), log_of(further, "margin")
        self.assertEqual(ends[0]["margin"], 0)
        self.assertGreater(begins[0]["margin"], 0.5 * ends[-1]["margin"])
        self.assertGreater(ends[-1]["margin"], 0.1)

    def test_buffers_of_other_programs_are_not_trained(self):
        """Fine-tuning of Marian and BART changed final_logits_bias, a buffer in transformers."""
        out = self.folder / "out"
        source, target = self.file("a.txt", "a cat\nthe dog\n" * 4), self.file("b.txt", "the dog\na cat\n" * 4)
        self.ok(fovea("train", "--pairs", source, target, "--from", MARIAN, "--out", out, "--lr", "0.01", "--steps", 2, "--validation", 0, "--warmup", 0))
        self.assertEqual(*(numbers_of(folder, "final_logits_bias") for folder in (MARIAN, out)))
        self.assertNotEqual(*(numbers_of(folder, "model.shared.weight") for folder in (MARIAN, out)))

    def test_a_dry_run_refuses_a_directory_that_cannot_be_made(self):
        """The plan of a run was printed although its directory could not be made."""
        for out in ("/proc/none/out", "/dev/null/out"):
            self.refused(fovea("train", self.text, "--preset", "tiny", "--dry-run", "--out", out), 2, f"--out: {out}")
        self.refused(fovea("embed", SENTENCES, "--train", self.file("a.tsv", "a\tb\n"), "--dry-run", "--out", "/proc/none/out"), 2, "--out")
        self.ok(fovea("train", self.text, "--preset", "tiny", "--dry-run", "--out", self.folder / "a/b"))
        self.assertFalse((self.folder / "a").exists())

    def test_a_run_that_ended_early_does_not_continue(self):
        """The notes of one run said that it continues to step 80 and that it has already reached step 60."""
        out = self.folder / "early"
        options = ("--lr", "0.3", "--patience", 1, "--evaluate-every", 5)
        self.ok(self.tune(out, "--steps", 60, *options))
        again = self.ok(self.tune(out, "--steps", 80, *options)).stderr.decode()
        self.assertNotIn("continues to step", again)
        self.assertIn("the run ended early at step", again)
        self.assertTrue(math.isfinite(log_of(out, "loss")[-1]["loss"]))


if __name__ == "__main__":
    unittest.main()
