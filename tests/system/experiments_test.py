"""Single parts of a model and of its training, which are options of their own, from a user's point of view."""
import json
import shutil
import unittest

from support import FoveaTest, fovea, tensors

ALONE = ("--width", "16", "--layers", "2", "--context", "32", "--steps", "6", "--batch", "2", "--warmup", "1",
         "--evaluate-windows", "4", "--sample-tokens", "8", "--dropout", "0")
SMALL = (*ALONE, "--heads", "2")  # a recurrent model has no heads
RECURRENT = ("--mixer", "lstm", "--position", "none", "--pre-norm", "false", "--final-norm", "false", "--residual", "false", "--ffn", "false",
             "--tied-head", "false", "--head-bias", "true")


class Experiments(FoveaTest):
    def loss(self, *options, steps="60"):
        out = self.folder / "loss"
        shutil.rmtree(out, ignore_errors=True)
        self.ok(fovea("train", self.text, "--out", out, *SMALL, "--steps", steps, "--learning-rate", "1e-2", *options))
        return json.loads(self.ok(fovea("eval", out, self.text, "--json")).stdout)["loss"]

    def test_values_of_the_first_layer_in_all_layers(self):
        spec, _, _ = self.check_commands(self.check_resume(*SMALL, "--value-residual", "0.5", "--zero-outputs", "true"))
        self.assertEqual(spec["decoder"]["attention"]["value_residual"], 0.5)
        self.assertTrue(spec["decoder"]["zero_outputs"])

    def test_a_model_without_layers(self):
        spec, plan, _ = self.check_commands(self.check_resume(*SMALL, "--layers", "0"))
        self.assertEqual(spec["decoder"]["layers"], 0)
        self.assertNotIn("attention", [part["name"] for part in plan["parts"]])

    def test_a_decoder_whose_tokens_see_later_ones(self):
        masked, open_ = self.loss(), self.loss("--causal", "false")
        self.assertLess(open_, masked)
        self.ok(fovea("generate", self.folder / "loss", "-p", "The", "-n", "8"))

    def test_windows_beyond_the_context(self):
        out = self.folder / "out"
        self.ok(fovea("train", self.text, "--out", out, *SMALL, "--position", "rotary"))
        losses = [json.loads(self.ok(fovea("eval", out, self.text, "--json", *more)).stdout)["loss"]
                  for more in ((), ("--context", "32"), ("--context", "128"))]
        self.assertEqual(losses[0], losses[1])
        self.assertNotEqual(losses[0], losses[2])
        table = self.folder / "table"
        self.ok(fovea("train", self.text, "--out", table, *SMALL, "--position", "learned"))
        self.refused(fovea("eval", table, self.text, "--context", "128"), (1, 2), "context", "expected at most 32")

    def test_heads_in_a_loop(self):
        found = [json.loads(self.ok(fovea("bench", "--train", "tiny", "--heads", way, "--steps", "3", "--json")).stdout) for way in ("batched", "loop")]
        for result in found:
            self.assertGreater(result.pop("milliseconds") * result.pop("tokens_per_second"), 0)
        self.assertEqual(*found)

    def test_optimizers_and_growing_steps(self):
        for optimizer in ("sgd", "lion", "adafactor", "muon"):
            shutil.rmtree(self.folder / "resumed", ignore_errors=True)
            model = self.check_resume(*SMALL, "--optimizer", optimizer, "--accumulate", "2", "--accumulate-from", "1", "--window-from", "4")
            state = json.loads((model / "checkpoint-6" / "state.json").read_text())
            self.assertEqual(state["settings"]["optimizer"], optimizer)
            plan = json.loads(self.ok(fovea("plan", model, "--optimizer", optimizer, "--json")).stdout)
            self.assertGreater(plan["bytes"]["moments"], 0)
            self.assertLess(plan["bytes"]["moments"], 8 * plan["parameters"])
        self.refused(fovea("train", self.text, "--out", self.folder / "x", *SMALL, "--optimizer", "lion", "--moments", "8bit"), (1, 2),
                     "moments", "expected --optimizer adamw")
        self.refused(fovea("train", self.text, "--out", self.folder / "x", *SMALL, "--muon-rate", "2"), (1, 2), "muon", "expected --optimizer muon")

    def test_a_recurrent_model_has_the_names_of_pytorch(self):
        out, copy = self.folder / "out", self.folder / "copy"
        self.ok(fovea("train", self.text, "--out", out, *ALONE, *RECURRENT))
        config = json.loads((out / "config.json").read_text())
        self.assertEqual((config["model_type"], config["hidden_size"], config["num_layers"]), ("lstm", 16, 2))
        found = tensors(out / "model.safetensors")
        self.assertEqual(found["rnn.weight_ih_l0"][0], [64, 16])
        self.assertEqual(found["rnn.bias_hh_l1"][0], [64])
        self.assertEqual(set(found), {"encoder.weight", "decoder.weight", "decoder.bias",
                                      *(f"rnn.{kind}_{part}_l{i}" for kind in ("weight", "bias") for part in ("ih", "hh") for i in (0, 1))})
        self.ok(fovea("convert", out, copy))
        self.assertEqual((copy / "model.safetensors").read_bytes(), (out / "model.safetensors").read_bytes())
        # A Spec that PyTorch's layers lack has fovea's format.
        self.ok(fovea("train", self.text, "--out", self.folder / "norm", *ALONE, *RECURRENT, "--pre-norm", "true"))
        self.assertEqual(json.loads((self.folder / "norm" / "config.json").read_text())["model_type"], "fovea")


if __name__ == "__main__":
    unittest.main()
