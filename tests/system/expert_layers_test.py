"""A model with shared experts, group-limited routing, DeepNorm and DyT passes through every command."""
import unittest

from support import FoveaTest, fovea

SMALL = ("--width", "16", "--heads", "2", "--layers", "2", "--context", "32", "--steps", "6", "--batch", "2", "--warmup", "1",
         "--ffn-width", "24", "--experts", "6", "--expert-width", "8", "--experts-score", "sigmoid", "--experts-selection-bias", "true",
         "--expert-groups", "3", "--expert-groups-chosen", "2", "--experts-scale", "1.5", "--experts-balance", "0.01",
         "--shared-experts", "2", "--shared-experts-gate", "true", "--dense-layers", "0",
         "--pre-norm", "false", "--post-norm", "true", "--residual-scale", "1.4", "--init-scale", "0.5",
         "--norm", "dyt", "--norm-alpha", "0.8")


class ExpertLayers(FoveaTest):
    def test_every_command_accepts_the_model(self):
        model = self.check_resume(*SMALL)
        spec, plan, trace = self.check_commands(model)
        self.assertEqual(spec["decoder"]["ffn"]["experts"]["shared_width"], 16)
        self.assertEqual(spec["decoder"]["norm"]["kind"], "dyt")
        self.ok(fovea("generate", model, "-p", "In the", "-n", "40", "--temperature", "0", "--dtype", "int4"))
        self.assertIn(b"2 of 6 experts per token and 2 shared", self.ok(fovea("plan", model)).stdout)
        parts = {part["name"]: part for part in plan["parts"]}
        self.assertEqual(parts["shared experts"]["parameters"], 2 * 16 * 16 + 16 + 16 + 16)  # of one layer, with biases and a gate
        self.assertEqual(parts["router"]["parameters"], 6 * 16 + 6)
        self.assertIn(b"decoder.1.ffn.shared.up.weight", trace)
        self.assertIn(b"decoder.1.norm.ffn.sum.alpha", trace)

    def test_invalid_combinations_are_named(self):
        plan = ("plan", "gpt2", "--experts", "6")
        self.refused(fovea(*plan, "--expert-groups", "4"), 2, "groups 4 does not divide count 6")
        self.refused(fovea(*plan, "--expert-groups", "3", "--experts-chosen", "3"), 2, "experts.chosen is 3", "at most 2")
        self.refused(fovea("plan", "gpt2", "--residual", "false", "--residual-scale", "2"), 2, "residual_scale is 2 without residual")


if __name__ == "__main__":
    unittest.main()
