"""--preset, --config and the other options; later ones take precedence."""
import json
import unittest

from support import FoveaTest, fovea


class Config(FoveaTest):
    def dump(self, *arguments):
        return json.loads(self.ok(fovea("train", "--dump-config", *arguments)).stdout)

    def bad(self, content, *mentions):
        path = self.file("spec.json", content)
        self.refused(fovea("train", self.text, "--dry-run", "--config", path), 2, path, *mentions)

    def test_preset_sets_model_and_training(self):
        nano, baby = self.dump("--preset", "nano"), self.dump("--preset", "baby")
        self.assertEqual((nano["width"], nano["train"]["batch"]), (128, 12))
        self.assertEqual((baby["width"], baby["train"]["batch"], baby["train"]["steps"]), (384, 64, 5000))

    def test_lists_are_arrays(self):
        config = self.dump("--freeze", "0-1", "--freeze", "embedding.*")
        self.assertEqual(config["train"]["freeze"], ["0-1", "embedding.*"])
        path = self.file("list.json", json.dumps(config))
        self.assertEqual(self.dump("--config", path)["train"]["freeze"], ["0-1", "embedding.*"])

    def test_config_overrides_the_preset_and_flags_override_both(self):
        path = self.file("spec.json", '{"width": 96, "train": {"steps": 77, "batch": 3}}')
        config = self.dump("--preset", "nano", "--config", path, "--batch", "5")
        self.assertEqual((config["width"], config["train"]["steps"], config["train"]["batch"]), (96, 77, 5))
        self.assertEqual(config["context"], self.dump("--preset", "nano")["context"])

    def test_a_dumped_config_can_be_read(self):
        first = fovea("train", "--dump-config", "--lr", "0.003", "--layers", "3", "--schedule", "trapezoid", "--dropout", "0.2")
        path = self.file("spec.json", self.ok(first).stdout)
        self.assertEqual(self.ok(fovea("train", "--dump-config", "--config", path)).stdout, first.stdout)

    def test_invalid_files_are_refused(self):
        self.bad("", "not an object")
        self.bad("{", "not JSON")
        self.bad(b"\xff\xfe\x00", "is UTF-16 or UTF-32")
        self.bad("[1]", "not an object")
        self.bad("[" * 100000, "deep")
        self.bad('{"a":' * 100000, "deep")
        self.bad('{"wdith": 5}', "wdith")
        self.bad('{"width": "wide"}', "width")
        self.bad('{"width": -1}', "width")
        self.bad('{"width": 1e400}')
        self.bad('{"train": 5}', "train")
        self.bad('{"train": {"btach": 5}}', "btach", "did you mean batch?")
        self.bad('{"train": {"batch": "1x"}}', '"1x" is not a whole number')
        self.bad('{"train": {"batch": null}}', "batch")
        self.bad('{"train": {"schedule": "cosin"}}', "did you mean cosine?")
        self.bad(" " * (2 << 20), "too large")
        self.refused(fovea("train", self.text, "--dry-run", "--config", self.folder / "none.json"), 2, "none.json")
        self.refused(fovea("train", self.text, "--dry-run", "--config", self.folder), 2, self.folder)

    def test_an_invalid_model_is_refused(self):
        for wrong in (["--heads", "3"], ["--kv-heads", "3"], ["--layers", "4097"], ["--width", "0"]):
            self.refused(fovea("train", self.text, "--dry-run", *wrong), 2)

    def test_an_unknown_preset_is_refused(self):
        self.refused(fovea("train", self.text, "--dry-run", "--preset", "nona"), 2, "nona", "nano")

    def test_from_excludes_a_new_shape(self):
        self.refused(fovea("train", self.text, "--dry-run", "--from", "x", "--layers", "3"), 2, "--layers", "--from")


if __name__ == "__main__":
    unittest.main()
