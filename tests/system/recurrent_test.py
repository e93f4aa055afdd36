"""A model with recurrent layers passes through every command: train, resume, generate, eval, plan and trace."""
import unittest

from support import FoveaTest, fovea

SMALL = ("--width", "16", "--heads", "2", "--layers", "3", "--context", "32", "--steps", "6", "--batch", "2", "--warmup", "1",
         "--mixer", "lstm", "--mixer", "attention", "--mixer", "gru", "--recurrence-width", "12")


class Recurrent(FoveaTest):
    def test_every_command_accepts_the_model(self):
        spec, plan, trace = self.check_commands(self.check_resume(*SMALL))
        self.assertEqual(spec["decoder"]["mixers"], ["lstm", "attention", "gru"])
        self.assertIn("recurrence", [part["name"] for part in plan["parts"]])
        self.assertIn(b"decoder.0.recurrence.hidden.weight", trace)

    def test_an_unknown_mixer_is_refused(self):
        self.refused(fovea("train", self.text, "--out", self.folder / "out", "--mixer", "mlp"), 2, "expected one of attention, rnn, gru, lstm, latent")


if __name__ == "__main__":
    unittest.main()
