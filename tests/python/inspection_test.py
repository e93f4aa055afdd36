"""Traces: the same as from the command line, hooks, muted heads, gradients, attributions."""

import unittest

import numpy as np
from support import TestCase, program, text_model

import fovea

TEXT = "The cat sees the dog"


class Inspection(TestCase):
    @classmethod
    def setUpClass(cls):
        cls.path = text_model()
        cls.model = fovea.load(cls.path)

    def test_a_trace_is_that_of_the_command_line(self):
        out = self.folder() / "trace.npz"
        program("trace", self.path, "--text", TEXT, "--what", "*,*hook*", "--gradients", "--out", out)
        expected = np.load(out)
        traced = self.model.trace(TEXT, what=["*", "*hook*"], gradients=True)
        self.assertEqual(set(traced), set(expected))
        for name, array in traced.items():
            np.testing.assert_array_equal(array, expected[name], err_msg=name)

    def test_names_of_transformerlens_may_lack_hook(self):
        traced = self.model.trace(TEXT, what="blocks.0.attn.pattern")
        self.assertIn("blocks.0.attn.hook_pattern", traced)

    def test_a_hook_reads_and_replaces(self):
        seen = []

        def mute(z):
            seen.append(z.shape)
            changed = z.copy()
            changed[:, :, 2] = 0
            return changed

        hooked = self.model.run(TEXT, hooks={"blocks.1.attn.z": mute})
        muted = self.model.run(TEXT, mute=[(1, 2)], what="logits")
        self.assertEqual(len(seen), 1)
        np.testing.assert_array_equal(hooked["logits"], muted["logits"])
        self.assertGreater(np.abs(hooked["logits"] - self.model.trace(TEXT)["logits"]).max(), 0)

    def test_a_hook_that_returns_nothing_changes_nothing(self):
        names = []
        read = self.model.run(TEXT, hooks={"hidden.[0-9]*": lambda x: names.append(x.shape)})
        self.assertEqual(len(names), self.model.spec.layers + 1)
        np.testing.assert_array_equal(read["logits"], self.model.trace(TEXT)["logits"])

    def test_errors_of_hooks(self):
        with self.assertRaisesRegex(ValueError, "the hook returned"):
            self.model.run(TEXT, hooks={"hidden.1": lambda x: x[:, :1]})
        with self.assertRaises(ZeroDivisionError):
            self.model.run(TEXT, hooks={"hidden.1": lambda x: 1 / 0})
        with self.assertRaisesRegex(ValueError, "hiden"):
            self.model.run(TEXT, hooks={"hiden.1": lambda x: None})

    def test_an_inspection_has_the_attention_of_the_trace(self):
        inspection = self.model.inspect(TEXT)
        weights = self.model.trace(TEXT)["attention.0"][0]
        np.testing.assert_allclose(inspection.map(0, [0, 1]), weights[:2], atol=1e-6)
        self.assertEqual(len(inspection.head_scores(0)), self.model.spec.heads)
        self.assertEqual(len(inspection.tokens), weights.shape[1])
        parts = inspection.attribute_logits(2, 5, 6)
        total = parts["embedding"] + parts["biases"] + np.sum(parts["heads"]) + np.sum(parts["feed_forward"])
        self.assertAlmostEqual(parts["difference"], total, places=3)

    def test_an_explanation_attributes_the_next_token(self):
        explanation = self.model.explain(TEXT, method="integrated_gradients")[0]
        scores = explanation.attributions[0].scores
        self.assertEqual(len(scores), len(explanation.tokens))
        self.assertAlmostEqual(explanation.value - explanation.attributions[0].baseline_value, scores.sum(), delta=0.1)

    def test_notebooks_show_escaped_html(self):
        from fovea import display

        page = display.attention_map(self.model.inspect("<b> & the cat"), 0, 0)._repr_html_()
        self.assertNotIn("<b>", page)
        self.assertIn("&lt;", page)
        self.assertIn(self.path, self.model._repr_html_())


if __name__ == "__main__":
    unittest.main()
