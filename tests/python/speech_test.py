"""Speech, translation and models of images: the same as from the command line."""

import json
import unittest
import wave

import numpy as np
from support import GOLDENS, TestCase, program

import fovea


class Speech(TestCase):
    def recording(self):
        """Three seconds of tones; returns the path of a file and its samples."""
        t = np.arange(3 * 16000) / 16000
        samples = (0.3 * np.sin(2 * np.pi * 220 * t) * np.sin(2 * np.pi * 3 * t) * 32767).astype("<i2")
        path = self.folder() / "tones.wav"
        with wave.open(str(path), "wb") as file:
            file.setnchannels(1)
            file.setsampwidth(2)
            file.setframerate(16000)
            file.writeframes(samples.tobytes())
        return path, samples

    def test_a_transcript_is_that_of_the_command_line(self):
        path, samples = self.recording()
        model = fovea.load(GOLDENS / "speech/model")
        printed = json.loads(program("transcribe", GOLDENS / "speech/model", path, "--format", "json", "--language", "en"))
        for audio in (path, path.read_bytes(), (samples / np.float32(32768)).astype(np.float32)):
            transcription = model.transcribe(audio, language="en")
            segments = list(transcription)
            self.assertEqual([segment.text for segment in segments], [segment["text"] for segment in printed["segments"]])
            self.assertEqual(transcription.result.text, printed["text"])
            self.assertEqual(json.loads(transcription.result.formatted("json")), printed)
        np.testing.assert_allclose(fovea.read_audio(str(path)), samples / 32768, atol=1e-6)

    def test_words_have_times(self):
        path, _ = self.recording()
        found = fovea.load(GOLDENS / "speech/model").words_in_audio(path, "en")
        self.assertEqual(found["similarity"].shape[0], len(found["words"]))
        self.assertEqual(found["spectrogram"].ndim, 2)


class Translation(TestCase):
    def test_translations_are_those_of_the_command_line(self):
        pairs = [(f"one {word}", f"{word} eins") for word in ("house", "dog", "cat", "tree")] * 20
        run = fovea.train(pairs=pairs, out=self.folder() / "run", steps=4, tokenizer="char", bleu_lines=0, batch_tokens=256, layers=1, encoder_layers=1, width=32)
        lines = ["one house", "one tree"]
        file = self.folder() / "lines.txt"
        file.write_text("\n".join(lines) + "\n", encoding="utf-8")
        printed = program("translate", run.out, file).splitlines()
        self.assertEqual(run.model.translate(lines), printed)
        self.assertEqual(run.model.translate(lines[0]), printed[0])
        self.assertEqual(len(run.model.translations(lines, best=3)[0].best), 3)


class Images(TestCase):
    def test_labels_of_images(self):
        folder = next(path.parent for path in sorted((GOLDENS / "vision").rglob("preprocessor_config.json")))
        model = fovea.ImageModel(str(folder))
        image = np.random.default_rng(1).integers(0, 255, (40, 30, 3), dtype=np.uint8)
        vectors = model.encode([image, image])
        self.assertEqual(vectors.shape, (2, model.width))
        np.testing.assert_array_equal(vectors[0], vectors[1])


if __name__ == "__main__":
    unittest.main()
