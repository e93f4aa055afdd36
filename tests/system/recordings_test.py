"""Transcription of recordings that espeak-ng makes, compared with transformers token for token (tests/goldens/speech/recordings.json)."""
import json
import unittest

import recordings
from support import FoveaTest, fovea
from transcribe_test import GOLDENS, MODEL, arguments_of


@unittest.skipUnless(recordings.ESPEAK, "needs espeak-ng, which makes the recordings")
class RecordingsTest(FoveaTest):
    def test_tokens_are_those_of_transformers(self):
        goldens = json.loads((GOLDENS / "recordings.json").read_text())
        made = {recording[0]: recording for recording in recordings.RECORDINGS}
        self.assertEqual([golden["name"] for golden in goldens["recordings"]], list(made))
        others = []
        for golden in goldens["recordings"]:
            samples = recordings.samples_of(made[golden["name"]])
            if recordings.digest(samples) != golden["samples"]:
                others.append(golden["name"])
                continue
            path = self.folder / "a.wav"
            recordings.write(path, made[golden["name"]], samples)
            for setting, expected in golden["texts"].items():
                with self.subTest(recording=golden["name"], setting=setting):
                    result = self.ok(fovea("transcribe", MODEL, path, "--json", *arguments_of({"options": goldens["settings"][setting]})))
                    found = json.loads(result.stdout)
                    self.assertEqual(found["language"], golden["language"])
                    self.assertEqual([[s["seek"], s["tokens"]] for s in found["segments"]], expected)
        if others:
            self.skipTest(f"this espeak-ng makes other recordings of: {', '.join(others)}")


if __name__ == "__main__":
    unittest.main()
