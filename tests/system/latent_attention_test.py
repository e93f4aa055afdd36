"""A model with latent attention passes through every command: train, resume, generate, eval, plan and trace."""
import unittest

from support import FoveaTest

SMALL = ("--width", "16", "--heads", "2", "--layers", "3", "--context", "32", "--steps", "6", "--batch", "2", "--warmup", "1",
         "--mixer", "latent", "--mixer", "attention", "--mixer", "latent", "--position", "rotary", "--latent-width", "12",
         "--latent-query-width", "8", "--value-width", "6")


class LatentAttention(FoveaTest):
    def test_every_command_accepts_the_model(self):
        spec, plan, trace = self.check_commands(self.check_resume(*SMALL))
        self.assertEqual(spec["decoder"]["mixers"], ["latent", "attention", "latent"])
        # One layer caches keys and values (16 + 12 numbers per token), two a latent and a rotated key (12 + 4).
        self.assertEqual(plan["bytes"]["cache_per_token"]["fp32"], 4 * (16 + 12 + 2 * (12 + 4)))
        self.assertIn(b"decoder.0.latent.key_up.weight", trace)


if __name__ == "__main__":
    unittest.main()
