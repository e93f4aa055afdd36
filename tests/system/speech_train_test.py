"""Fine-tuning of a speech model on recordings, compared with transformers (tests/goldens/speech/training.json)."""
import json
import unittest

import synthetic_audio
from support import FoveaTest, fovea
from transcribe_test import GOLDENS, MODEL

GOLDEN = json.loads((GOLDENS / "training.json").read_text())
# Plain gradient descent, as in the golden.
PLAIN = ["--optimizer", "sgd", "--momentum", "0", "--weight-decay", "0", "--clip", "0", "--schedule", "constant", "--warmup", "0",
         "--learning-rate", str(GOLDEN["rate"]), "--precision", "fp32", "--steps", str(len(GOLDEN["steps"])), "--batch", "6"]


class SpeechTrainTest(FoveaTest):
    def table(self, name="pairs.csv", pairs=GOLDEN["pairs"]):
        lines = ["audio,text,language"]
        for i, (part, text, language) in enumerate(pairs):
            synthetic_audio.write_wav(self.folder / f"{i}.wav", synthetic_audio.samples_of([part]))
            lines.append(f'{i}.wav,"{text}",{language}')
        return self.file(name, "\n".join(lines) + "\n")

    def log(self, out):
        return [json.loads(line) for line in (out / "log.jsonl").read_text().splitlines()]

    def test_losses_are_those_of_transformers(self):
        table, out = self.table(), self.folder / "out"
        found = json.loads(self.ok(fovea("eval", MODEL, table, "--dtype", "fp32", "--json")).stdout)
        self.assertEqual(found["objective"], "speech")
        self.assertAlmostEqual(found["loss"], GOLDEN["loss"], delta=1e-5)
        self.assertEqual(found["sequences"], len(GOLDEN["pairs"]))
        self.assertGreater(found["wer"], 0)
        self.assertGreater(found["cer"], 0)
        self.ok(fovea("train", table, "--from", MODEL, "--out", out, *PLAIN, "--validation-pairs", table, "--evaluate-every", "5"))
        log = self.log(out)
        losses = [line["loss"] for line in log if "loss" in line]
        self.assertEqual(len(losses), len(GOLDEN["steps"]))
        for loss, expected in zip(losses, GOLDEN["steps"]):
            self.assertAlmostEqual(loss, expected, delta=1e-5)
        self.assertTrue(any("wer" in json.dumps(line) for line in log))
        self.ok(fovea("transcribe", out, self.folder / "0.wav"))

    def test_adapters_learn_and_resume(self):
        table, out = self.table(), self.folder / "out"
        command = ["train", table, "--from", MODEL, "--out", out, "--lora", "4", "--learning-rate", "0.02", "--batch", "6", "--warmup", "0",
                   "--precision", "fp32", "--validation-pairs", table, "--best-by", "loss", "--save-every", "10", "--evaluate-every", "10"]
        self.ok(fovea(*command, "--steps", "10"))
        self.ok(fovea(*command, "--steps", "30", "--allow-change"))
        losses = [line["loss"] for line in self.log(out) if "loss" in line]
        self.assertLess(losses[-1], 0.7 * losses[0])
        self.ok(fovea("transcribe", out, self.folder / "0.wav"))

    def test_errors_name_the_location(self):
        table = self.table()
        synthetic_audio.write_wav(self.folder / "0.wav", synthetic_audio.voice(4, 1))  # longer than the window
        result = self.ok(fovea("train", table, "--from", MODEL, "--out", self.folder / "out", "--steps", "1", "--validation", "0"))
        self.assertIn(b"1 recordings that are longer than 3 s", result.stderr)
        for language, text in (("", "pairs.csv:2: has no language; expected"), ("ko", "pairs.csv:2: ko is no language of the model")):
            other = self.table(pairs=[[GOLDEN["pairs"][0][0], "text", language]])
            self.refused(fovea("train", other, "--from", MODEL, "--out", self.folder / "other", "--steps", "1"), 2, text)
        self.refused(fovea("eval", MODEL, self.text), 2, "is no table of recordings; expected")


if __name__ == "__main__":
    unittest.main()
