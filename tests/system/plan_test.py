"""fovea plan: the cost of models, without creating them."""
import json
import time
import unittest

from support import FoveaTest, fovea


class Plan(FoveaTest):
    def plan(self, *arguments):
        return json.loads(self.ok(fovea("plan", *arguments, "--json")).stdout)

    def test_a_preset_is_printed_as_a_table(self):
        text = self.ok(fovea("plan", "gpt2")).stdout.decode()
        for words in ("124,439,808", "attention", "feed-forward", "fp32", "key-value cache", "--speed"):
            self.assertIn(words, text)

    def test_the_largest_model_is_planned_quickly(self):
        start = time.monotonic()
        plan = self.plan("gpt3", "--tokens", "300B", "--speed", "28T", "--price", "1.5", "--devices", "1024")
        self.assertLess(time.monotonic() - start, 10)  # loading the weights would take minutes
        self.assertEqual(plan["parameters"], 174604259328)
        training = plan["training"]
        self.assertAlmostEqual(training["rule_flops"] / 3.14e23, 1, delta=0.002)
        self.assertAlmostEqual(training["cost"] / 4.74e6, 1, delta=0.001)
        self.assertAlmostEqual(training["seconds"] * 1024 / 3600, training["device_hours"], delta=1)

    def test_parts_add_up_to_the_total(self):
        for preset in ("mixtral-8x7b", "t5-base", "whisper-small", "vit-base", "bert-base", "transformer-big"):
            plan = self.plan(preset)
            self.assertEqual(sum(part["parameters"] for part in plan["parts"]), plan["parameters"])
            self.assertEqual(sum(part["active"] for part in plan["parts"]), plan["active"])
            self.assertAlmostEqual(sum(part["flops"] for part in plan["parts"]) / plan["flops"], 1)
            self.assertEqual(plan["active"] < plan["parameters"], preset == "mixtral-8x7b")

    def test_options_change_a_spec(self):
        path = self.file("spec.json", '{"width": 64, "vocabulary": 100, "context": 32, "decoder": {"layers": 2, "attention": {"heads": 4}}}')
        plan = self.plan(path)
        self.assertEqual(plan["parameters"], 2 * (12 * 64 * 64 + 13 * 64) + (100 + 32) * 64 + 2 * 64)
        self.assertEqual(plan["spec"]["width"], 64)
        self.assertEqual(self.plan(path, "--layers", "3")["parameters"] - plan["parameters"], 12 * 64 * 64 + 13 * 64)
        shorter = self.plan(path, "--length", "8", "--batch", "4")
        self.assertEqual((shorter["length"], shorter["batch"]), (8, 4))
        self.assertLess(shorter["flops"], plan["flops"] / 4 + 1)

    def test_a_directory_needs_no_weights(self):
        run = fovea("train", self.text, "--preset", "tiny", "--steps", "1", "--sample-every", "0", "--out", self.folder / "model")
        self.ok(run)
        (self.folder / "model/model.safetensors").unlink()
        plan = self.plan(self.folder / "model")
        self.assertEqual(plan["spec"]["decoder"]["layers"], 3)
        self.assertEqual(plan["parameters"], sum(part["parameters"] for part in plan["parts"]))

    def test_an_assumed_vocabulary_is_reported(self):
        done = self.ok(fovea("plan", "nano", "--json"))
        self.assertIn(b"vocabulary: 256 assumed", done.stderr)
        self.assertEqual(json.loads(done.stdout)["spec"]["vocabulary"], 256)
        self.assertEqual(self.ok(fovea("plan", "nano", "--vocabulary", "65")).stderr, b"")

    def test_invalid_requests_are_refused(self):
        self.refused(fovea("plan"), 2, "MODEL", "expected")
        self.refused(fovea("plan", "gpt22"), 2, "gpt22", "did you mean gpt2?")
        self.refused(fovea("plan", self.folder), 2, "config.json")
        self.refused(fovea("plan", self.file("x.json", "{")), 2, "x.json")
        self.refused(fovea("plan", self.file("y.json", '{"wdith": 3}')), 2, "wdith")
        self.refused(fovea("plan", "gpt2", "--tokens", "many"), 2, "--tokens")
        self.refused(fovea("plan", "gpt2", "--speed", "-1"), 2, "--speed")
        self.refused(fovea("plan", "gpt2", "--speed", "1e400"), 2, "--speed")
        self.refused(fovea("plan", "gpt2", "--length", "5000"), 2, "--length", "1024")
        self.refused(fovea("plan", "gpt2", "--heads", "5"), 2, "heads")
        self.refused(fovea("plan", "vit-base", "--length", "10"), 2, "--length", "197")
        self.refused(fovea("plan", "gpt2", "--layers", "4096", "--width", "16777216", "--heads", "4096", "--head-width", "256",
                           "--ffn-width", "16777216", "--experts", "4096"), 2, "experts")


if __name__ == "__main__":
    unittest.main()
