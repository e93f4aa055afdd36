"""fovea train --lora, and the commands that open a model with adapters."""
import json
import math

from support import SMALL, FoveaTest, fovea


class Adapters(FoveaTest):
    def adapter(self, *options):
        out = self.folder / "adapter"
        if not out.exists():
            self.ok(fovea("train", self.text, "--from", self.model(), "--out", out, "--steps", "5", "--batch", "2", "--lora", "4",
                          "--learning-rate", "0.01", *options))
        return out

    def perplexity(self, *arguments):
        r = self.ok(fovea("eval", *arguments, self.text, "--json"))
        return json.loads(r.stdout)["perplexity"]

    def test_a_run_with_lora_writes_an_adapter(self):
        out = self.adapter()
        config = json.loads((out / "adapter_config.json").read_text())
        self.assertEqual((config["peft_type"], config["r"], config["lora_alpha"]), ("LORA", 4, 8))
        self.assertEqual(config["base_model_name_or_path"], str(self.model()))
        self.assertTrue((out / "adapter_model.safetensors").exists())
        self.assertFalse((out / "model.safetensors").exists())

    def test_the_rank_may_be_omitted(self):
        for arguments in (["--lora"], ["--lora", "--seed", "3"], ["--lora", "16"], ["--lora=16"]):
            r = fovea("train", self.text, "--from", self.model(), "--dump-config", *arguments)
            self.ok(r)
            self.assertEqual(json.loads(r.stdout)["train"]["lora"], 16, arguments)
        plan = fovea("train", "--lora", self.text, "--from", self.model(), "--dry-run", "--json")
        self.ok(plan)
        plan = json.loads(plan.stdout)
        self.assertLess(plan["trained_parameters"], plan["parameters"])

    def test_commands_open_a_model_with_adapters(self):
        out, model = self.adapter(), self.model()
        alone, adapted = self.perplexity(model), self.perplexity(out)
        self.assertNotEqual(alone, adapted)
        self.assertAlmostEqual(self.perplexity(model, "--adapter", out), adapted, delta=1e-4 * adapted)
        self.assertAlmostEqual(self.perplexity(model, "--adapter", f"{out}:0.5", "--adapter", f"{out}:0.5"), adapted,
                               delta=1e-4 * adapted)
        self.assertAlmostEqual(self.perplexity(out, "--adapter", f"{out}:-1"), alone, delta=1e-4 * alone)
        self.ok(fovea("generate", out, "-p", "The", "-n", "3"))
        self.ok(fovea("generate", model, "--adapter", out, "-p", "The", "-n", "3", "--dtype", "int8"))
        self.ok(fovea("trace", model, "--adapter", out, "--text", "The", "--gradients", "--out", self.folder / "trace.safetensors"))

    def test_convert_merges_adapters(self):
        merged, gguf, small = self.folder / "merged", self.folder / "merged.gguf", self.folder / "small"
        adapted = self.perplexity(self.adapter())
        self.ok(fovea("convert", self.model(), merged, "--adapter", self.adapter()))
        self.assertAlmostEqual(self.perplexity(merged), adapted, delta=1e-4 * adapted)
        self.ok(fovea("convert", self.adapter(), gguf))
        self.assertAlmostEqual(self.perplexity(gguf), adapted, delta=1e-3 * adapted)
        self.ok(fovea("convert", self.adapter(), small, "--quantize", "int8"))
        self.assertLess(abs(math.log(self.perplexity(small) / adapted)), 0.02)

    def test_invalid_requests_are_refused(self):
        out = self.folder / "out"
        self.refused(fovea("train", self.text, "--out", out, *SMALL, "--lora", "4"), 2, "--lora", "--from")
        self.refused(fovea("train", self.text, "--out", out, "--from", self.model(), "--dora"), 2, "--dora", "--lora")
        self.refused(fovea("train", self.text, "--out", out, "--from", self.model(), "--lora", "--lora-targets", "none"), 2,
                     "--lora-targets", "none")
        self.refused(fovea("train", self.text, "--out", out, "--from", self.adapter(), "--lora"), 2, "--lora: 16; expected 4")
        self.refused(fovea("eval", self.model(), self.text, "--adapter", self.model()), 2, "is not an adapter")
