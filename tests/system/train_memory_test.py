"""Options of `train` that save memory: layers that are computed again, moments in 8 bits, frozen parameters."""
import json
import unittest

from support import SMALL, FoveaTest, digests, fovea

# A step keeps about 70 MB of its layers.
DEEP = ["--preset", "tiny", "--layers", "8", "--width", "128", "--heads", "2", "--context", "256", "--batch", "8", "--dropout", "0.1",
        "--steps", "1", "--sample-every", "0", "--evaluate-windows", "1", "--validation", "0.2"]


class TrainMemory(FoveaTest):
    def run_once(self, name, *options):
        out = self.folder / name
        return json.loads(self.ok(fovea("train", self.text, "--out", out, *DEEP, *options, "--json")).stdout), digests(out)

    def test_layers_computed_again_need_less_memory_and_give_the_same_bits(self):
        kept, weights = self.run_once("kept")
        again, weights_again = self.run_once("again", "--recompute")
        self.assertEqual(weights_again, weights)
        self.assertLess(again["peak_bytes"], kept["peak_bytes"] - (30 << 20))
        self.assertLess(again["planned_bytes"], kept["planned_bytes"] - (40 << 20))

    def test_moments_of_8_bits_are_smaller_and_resume_with_the_same_bits(self):
        out = self.check_resume(*SMALL, "--steps", "6", "--moments", "8bit")
        wide = self.folder / "wide"
        self.ok(self.train(wide, steps=6))
        size = {folder: (folder / "checkpoint-6/state.safetensors").stat().st_size for folder in (out, wide)}
        self.assertLess(size[out], size[wide] * 0.6)  # 6 bytes per parameter instead of 12
        self.refused(fovea("train", self.text, "--out", out, *SMALL, "--steps", "6"), 2, "moments was")
        self.refused(fovea("train", self.text, "--out", out, *SMALL, "--steps", "9", "--allow-change"), 2, "--moments: ", "8bit")

    def test_frozen_parameters_are_counted_and_unknown_names_refused(self):
        frozen = self.ok(self.train(self.folder / "out", "--freeze", "0", "embedding.*"))
        self.assertRegex(frozen.stderr.decode(), r"parameters \(\S+ trained\)")
        self.refused(self.train(self.folder / "other", "--freeze", "0-7"), 2, "--freeze: the model has no layers 0-7", "from 0 to 1")
        self.refused(self.train(self.folder / "other", "--freeze", "*.q_proj.weight"), 2, "--freeze: the model has no parameter named *.q_proj.weight")


if __name__ == "__main__":
    unittest.main()
