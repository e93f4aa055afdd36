"""Transcription of recordings that espeak-ng makes, compared with transformers token for token, and with the times of
words of openai-whisper (tests/goldens/speech/recordings.json, recording_words.json)."""
import json
import unittest

import recordings
from support import FoveaTest, fovea
from transcribe_test import GOLDENS, MODEL, WORD_SECONDS, arguments_of


@unittest.skipUnless(recordings.ESPEAK, "needs espeak-ng, which makes the recordings")
class RecordingsTest(FoveaTest):
    def compare(self, check):
        """Calls check(golden, path, settings) for each recording of the goldens that this espeak-ng makes."""
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
            check(golden, path, goldens["settings"])
        if others:
            self.skipTest(f"this espeak-ng makes other recordings of: {', '.join(others)}")

    def transcript(self, path, options, *more):
        result = self.ok(fovea("transcribe", MODEL, path, "--json", *arguments_of({"options": options}), *more))
        return json.loads(result.stdout)

    def test_tokens_are_those_of_transformers(self):
        def check(golden, path, settings):
            for setting, expected in golden["texts"].items():
                with self.subTest(recording=golden["name"], setting=setting):
                    found = self.transcript(path, settings[setting])
                    self.assertEqual(found["language"], golden["language"])
                    self.assertEqual([[s["seek"], s["tokens"]] for s in found["segments"]], expected)

        self.compare(check)

    def test_times_of_words_are_those_of_openai_whisper(self):
        words = json.loads((GOLDENS / "recording_words.json").read_text())

        def check(golden, path, settings):
            if golden["name"] not in words:
                return
            with self.subTest(recording=golden["name"]):
                expected = words[golden["name"]]
                segments = self.transcript(path, settings["words"], "--word-timestamps")["segments"]
                found = [word for segment in segments for word in segment.get("words", [])]
                self.assertEqual([word["word"] for word in found], [word for word, _, _ in expected])
                for word, (_, start, end) in zip(found, expected):
                    self.assertAlmostEqual(word["start"], start, delta=WORD_SECONDS)
                    self.assertAlmostEqual(word["end"], end, delta=WORD_SECONDS)

        self.compare(check)


if __name__ == "__main__":
    unittest.main()
