"""A model with latent attention passes through every command: train, resume, generate, eval, plan, trace and inspect."""
import json
import shutil
import unittest

from support import FoveaTest, fovea

SMALL = ("--width", "16", "--heads", "2", "--layers", "3", "--context", "32", "--steps", "6", "--batch", "2", "--warmup", "1",
         "--mixer", "latent", "--mixer", "attention", "--mixer", "latent", "--position", "rotary", "--latent-width", "12",
         "--latent-query-width", "8", "--value-width", "6")


class LatentAttention(FoveaTest):
    def trained(self, out):
        self.ok(fovea("train", self.text, "--out", self.folder / out, *SMALL, "--save-every", "3"))
        return self.folder / out

    def test_a_resumed_run_gives_the_same_weights(self):
        model = self.trained("model")
        weights = (model / "model.safetensors").read_bytes()
        shutil.rmtree(model / "checkpoint-6")
        self.assertTrue((model / "checkpoint-3").is_dir())
        self.assertEqual((self.trained("model") / "model.safetensors").read_bytes(), weights)

    def test_every_command_accepts_the_model(self):
        model = self.trained("model")
        config = json.loads((model / "config.json").read_text())
        self.assertEqual(config["spec"]["decoder"]["mixers"], ["latent", "attention", "latent"])
        text = self.ok(fovea("generate", model, "-p", "In the", "-n", "40", "--temperature", "0")).stdout
        self.assertEqual(self.ok(fovea("generate", model, "-p", "In the", "-n", "40", "--temperature", "0", "--guess", "4")).stdout, text)
        self.ok(fovea("eval", model, self.text))
        plan = json.loads(self.ok(fovea("plan", model, "--json")).stdout)
        # One layer caches keys and values (16 + 12 numbers per token), two a latent and a rotated key (12 + 4).
        self.assertEqual(plan["bytes"]["cache_per_token"]["fp32"], 4 * (16 + 12 + 2 * (12 + 4)))
        out = self.folder / "trace.safetensors"
        self.ok(fovea("trace", model, "--text", "In the", "--out", out, "--gradients"))
        self.assertIn(b"decoder.0.latent.key_up.weight", out.read_bytes())


if __name__ == "__main__":
    unittest.main()
