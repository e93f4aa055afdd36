"""Transcription of audio files and streams, compared with transformers and openai-whisper (tests/goldens/speech)."""
import json
import pathlib
import shutil
import subprocess
import unittest

import crafted_speech
import synthetic_audio
from support import FOVEA, ROOT, FoveaTest, fovea

GOLDENS = ROOT / "tests/goldens/speech"
LIBAV = pathlib.Path(FOVEA).with_name("fovea_libav.so").exists()
MODEL = GOLDENS / "model"
# transformers' defaults, which the options of a golden change.
PLAIN = {"--logprob-threshold": "0", "--compression-ratio-threshold": "0", "--no-speech-threshold": "1", "--beams": "1",
         "--previous-text": "false"}
WORD_SECONDS = 0.04  # tolerance of the times of words


def switched(options):
    """Replaces fields that are set to false by the flags that switch them off."""
    return {"--no-" + name[2:] if value == "false" else name: value if value not in ("true", "false") else True
            for name, value in options.items() if value != "true"}


def arguments_of(case):
    options = dict(PLAIN)
    given = iter(case["options"])
    for name in given:
        options[name] = True if name == "--translate" else next(given)
    return [part for name, value in switched(options).items() for part in ([name] if value is True else [name, value])]


class TranscribeTest(FoveaTest):
    def wav(self, name, samples, **more):
        path = self.folder / name
        synthetic_audio.write_wav(path, samples, **more)
        return path

    def transcript(self, *arguments, **more):
        return json.loads(self.ok(fovea("transcribe", MODEL, *arguments, "--json", **more)).stdout)

    def test_tokens_are_those_of_transformers(self):
        for case in json.loads((GOLDENS / "expected.json").read_text()):
            with self.subTest(case["name"]):
                found = self.transcript(self.wav("a.wav", synthetic_audio.samples_of(case["audio"])), *arguments_of(case))
                wanted = [(w["seek"], s) for w in case["windows"] for s in w["segments"]]
                self.assertEqual(found["language"], case["language"])
                self.assertEqual([s["tokens"] for s in found["segments"]], [s["tokens"] for _, s in wanted])
                self.assertEqual([s["seek"] for s in found["segments"]], [seek for seek, _ in wanted])
                for segment, (_, expected) in zip(found["segments"], wanted):
                    self.assertAlmostEqual(segment["start"], expected["start"], places=6)
                    self.assertAlmostEqual(segment["end"], expected["end"], places=6)

    def test_crafted_logits_give_the_tokens_and_temperatures_of_transformers(self):
        path = self.wav("a.wav", synthetic_audio.samples_of(crafted_speech.SPEECH))
        goldens = json.loads((GOLDENS / "crafted.json").read_text())
        self.assertEqual([golden["name"] for golden in goldens], [name for name, *_ in crafted_speech.CASES])
        for golden, (name, factor, added, settings) in zip(goldens, crafted_speech.CASES):
            with self.subTest(name):
                model = self.folder / "crafted"
                crafted_speech.write(model, MODEL, factor, added)
                found = json.loads(self.ok(fovea("transcribe", model, path, "--json", "--beams", "1", "--no-previous-text", *settings["options"])).stdout)
                self.assertEqual(found["language"], golden["language"])
                self.assertEqual([[s["seek"], round(s["temperature"], 9), s["tokens"]] for s in found["segments"]], golden["texts"])

    def test_times_of_words_are_those_of_openai_whisper(self):
        compared = 0
        for case in json.loads((GOLDENS / "expected.json").read_text()):
            if "words" not in case:
                continue
            found = self.transcript(self.wav("a.wav", synthetic_audio.samples_of(case["audio"])), "--word-timestamps", *arguments_of(case))
            for segment, expected in zip(found["segments"], case["words"]):
                self.assertEqual([w["word"] for w in segment.get("words", [])], [w[0] for w in expected])
                for word, (_, start, end, probability) in zip(segment.get("words", []), expected):
                    self.assertAlmostEqual(word["start"], start, delta=WORD_SECONDS)
                    self.assertAlmostEqual(word["end"], end, delta=WORD_SECONDS)
                    self.assertAlmostEqual(word["probability"], probability, places=3)
                    compared += 1
        self.assertGreater(compared, 5)

    def test_words_of_a_text_that_fills_the_context_have_times(self):
        model = self.folder / "crafted"
        crafted_speech.write(model, MODEL, 0, {crafted_speech.THE: 12})
        result = self.ok(fovea("transcribe", model, self.wav("a.wav", synthetic_audio.voice(2, 3)), "--json", "--word-timestamps", *arguments_of({"options": []})))
        segment = json.loads(result.stdout)["segments"][0]
        self.assertEqual(len(segment["tokens"]), 61)  # of 64 positions; the alignment has room for 59 tokens of text
        self.assertEqual([word["word"] for word in segment["words"]], 59 * [" the"])

    def test_windows_together_do_not_depend_on_their_number(self):
        path = self.wav("a.wav", synthetic_audio.samples_of([["voice", 8, 5]]))
        two, four = (self.transcript(path, "--batch-size", n, "--beams", "2")["segments"] for n in ("2", "4"))
        self.assertEqual(two, four)
        self.assertEqual(sorted({s["seek"] for s in two}), [0, 300, 600])

    def test_a_stream_gives_the_text_of_the_file(self):
        # The second part is louder, so the first windows are transcribed again.
        for louder in (False, True):
            quiet, loud = synthetic_audio.voice(5, 5), synthetic_audio.voice(3, 9)
            samples = [x * (0.001 if louder else 1) for x in quiet] + [x * (1 if louder else 0.5) for x in loud]
            file = self.transcript(self.wav("a.wav", samples), *arguments_of({"options": []}))
            raw = synthetic_audio.pcm16(samples)
            for data, options in ((raw, []), (synthetic_audio.wav_header() + raw, ["--rate", "8000"])):
                result = fovea("transcribe", MODEL, "-", "--json", *arguments_of({"options": []}), *options, input=data)
                stream = json.loads(self.ok(result).stdout)
                self.assertEqual(stream["segments"], file["segments"])
                self.assertIn(b"...", result.stderr)
                if louder:
                    self.assertIn(b"transcribing again", result.stderr)

    def test_partial_text_comes_before_the_audio_ends(self):
        process = subprocess.Popen([FOVEA, "transcribe", str(MODEL), "-"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE)
        process.stdin.write(synthetic_audio.pcm16(synthetic_audio.voice(2, 5)))
        process.stdin.flush()
        line = b""
        while b"..." not in line:  # the stream stays open
            line = process.stderr.readline()
            self.assertTrue(line)
        out, _ = process.communicate()
        self.assertEqual(process.returncode, 0)
        self.assertTrue(out)

    def test_silence_costs_nothing(self):
        path = self.wav("a.wav", synthetic_audio.silence(120))
        self.assertEqual(self.transcript(path, "--vad")["segments"], [])
        parts = self.transcript(self.wav("b.wav", synthetic_audio.silence(9) + synthetic_audio.voice(2, 3) + synthetic_audio.silence(9)), "--vad")
        self.assertGreaterEqual(min(s["seek"] for s in parts["segments"]), 850)
        self.assertLess(max(s["seek"] for s in parts["segments"]), 1150)

    def test_a_stream_of_silence_is_not_decoded(self):
        silent = synthetic_audio.silence(30)
        result = fovea("transcribe", MODEL, "-", "--vad", "--json", input=synthetic_audio.pcm16(silent))
        self.assertEqual(json.loads(self.ok(result).stdout)["segments"], [])
        self.assertNotIn(b"...", result.stderr)
        # The voice of the first window is the loudest one, so that later audio does not change what is voice.
        samples = silent + synthetic_audio.voice(2.5, 5) + synthetic_audio.silence(9) + [x / 2 for x in synthetic_audio.voice(5, 9)] + silent
        options = ["--vad", *arguments_of({"options": []})]
        file = self.transcript(self.wav("a.wav", samples), *options)
        result = fovea("transcribe", MODEL, "-", "--json", *options, input=synthetic_audio.pcm16(samples))
        self.assertEqual(json.loads(self.ok(result).stdout)["segments"], file["segments"])
        self.assertNotIn(b"transcribing again", result.stderr)
        self.assertLess(result.stderr.count(b"..."), 2 * 11)

    def test_a_single_sample_has_no_language(self):
        result = fovea("transcribe", MODEL, self.wav("a.wav", [0.5]))
        self.assertEqual(self.ok(result).stdout, b"")
        self.assertNotIn(b"language", result.stderr)

    def test_formats_and_folders(self):
        folder = self.folder / "recordings"
        folder.mkdir()
        for name in ("b.wav", "a.wav"):
            synthetic_audio.write_wav(folder / name, synthetic_audio.voice(1, 3), rate=synthetic_audio.RATE)
        (folder / "notes.txt").write_text("no audio")
        out = self.folder / "out"
        self.ok(fovea("transcribe", MODEL, folder, "--format", "srt", "--out", out))
        self.assertEqual(sorted(p.name for p in out.iterdir()), ["a.srt", "b.srt"])
        self.assertIn("-->", (out / "a.srt").read_text())
        (folder / "notes.txt").unlink()
        synthetic_audio.write_wav(folder / "a.aiff", synthetic_audio.voice(1, 3))  # the content tells the format
        self.ok(fovea("transcribe", MODEL, folder, "--format", "tsv", "--out", out))
        self.assertEqual(sorted(p.name for p in out.glob("*.tsv")), ["a.aiff.tsv", "a.wav.tsv", "b.tsv"])
        (folder / "a.aiff").unlink()
        other = self.folder / "other"
        other.mkdir()
        synthetic_audio.write_wav(other / "a.wav", synthetic_audio.voice(1, 3))
        self.refused(fovea("transcribe", MODEL, folder / "a.wav", other / "a.wav", "--out", out), 2, "is the output of")
        self.refused(fovea("transcribe", MODEL, folder / "a.wav", "--out", self.folder / "none" / "a.txt"), 1, "none does not exist; expected")
        one = self.folder / "one.vtt"
        self.ok(fovea("transcribe", MODEL, folder / "a.wav", "--format", "vtt", "--out", one))
        self.assertTrue(one.read_text().startswith("WEBVTT\n\n00:"))
        text = self.ok(fovea("transcribe", MODEL, folder)).stdout
        self.assertEqual(text, self.ok(fovea("transcribe", MODEL, folder / "a.wav", folder / "b.wav")).stdout)

    def test_channels_and_rates_do_not_matter(self):
        samples = synthetic_audio.voice(2.2, 3)
        mono = self.transcript(self.wav("a.wav", samples), *arguments_of({"options": []}))
        stereo = self.transcript(self.wav("b.wav", samples, channels=2), *arguments_of({"options": []}))
        self.assertEqual(mono, stereo)
        self.transcript(self.wav("c.wav", synthetic_audio.voice(2.2, 3, rate=44100), rate=44100))

    def encoded(self, path, name, *options):
        """Converts a file by ffmpeg; returns None if it lacks the encoder."""
        made = self.folder / name
        command = ["ffmpeg", "-loglevel", "error", "-y", "-i", path, *options, made]
        return made if subprocess.run(command, check=False, stderr=subprocess.DEVNULL).returncode == 0 else None

    @unittest.skipUnless(shutil.which("ffmpeg"), "needs ffmpeg")
    def test_compressed_files_are_read(self):
        path = self.wav("a.wav", synthetic_audio.voice(2, 3))
        lossless = self.transcript(path, *arguments_of({"options": []}))
        for name in ("b.flac", "b.ogg", "b.opus", "b.mp3"):
            made = self.encoded(path, name)
            if made is None:
                continue
            found = self.transcript(made, *arguments_of({"options": []}))
            if name == "b.flac":
                self.assertEqual(found, lossless)

    @unittest.skipUnless(shutil.which("ffmpeg"), "needs ffmpeg")
    @unittest.skipUnless(LIBAV, "this build has no module fovea_libav.so")
    def test_containers_are_read_and_cut_ones_end_at_the_cut(self):
        path = self.wav("a.wav", synthetic_audio.voice(6, 3))
        plain = arguments_of({"options": []})
        lossless = self.transcript(path, *plain)
        for name, options in (("a.mov", ["-c:a", "pcm_s16le"]), ("b.m4a", ["-c:a", "alac"]), ("c.mka", ["-c:a", "flac"]),
                              ("d.m4a", ["-c:a", "aac"]), ("e.webm", ["-c:a", "libopus", "-ar", "48000", "-ac", "2"]), ("f.aac", ["-c:a", "aac"])):
            made = self.encoded(path, name, *options)
            if made is None:
                continue
            with self.subTest(name):
                found = self.transcript(made, *plain)
                if name[0] in "abc":  # of lossless audio, with another duration of the last window at most
                    self.assertEqual(found["segments"], lossless["segments"])
                content = made.read_bytes()
                for length in (len(content) // 3, len(content) - 200):
                    made.write_bytes(content[:length])
                    result = fovea("transcribe", MODEL, made)
                    self.assertIn(result.returncode, (0, 2))
                    self.assertLessEqual(result.stderr.count(b"fovea: error"), 1)
                for place in range(0, 2000, 97):
                    made.write_bytes(content[:place] + b"\xff\xff\xff\xff" + content[place + 4:])
                    result = fovea("transcribe", MODEL, made)
                    self.assertIn(result.returncode, (0, 2))
                    self.assertLessEqual(result.stderr.count(b"fovea: error"), 1)

    @unittest.skipIf(LIBAV, "this build has the module fovea_libav.so")
    def test_containers_need_a_module(self):
        path = self.file("a.m4a", b"\0\0\0\x20ftypM4A " + bytes(100))
        self.refused(fovea("transcribe", MODEL, path), 2, "is a container of the kind MP4 (m4a, mp4, mov), which needs FFmpeg's libraries")

    def test_hostile_files_get_one_line(self):
        good = synthetic_audio.pcm16(synthetic_audio.voice(0.5, 3))
        nan = b"\x00\x00\xc0\x7f"
        cases = {
            "empty": (b"", "is not an audio file"),
            "text": (b"hello world, this is text", "is not an audio file"),
            "cut header": (synthetic_audio.wav_header()[:20], "is not an audio file"),
            "no channels": (synthetic_audio.wav_header(channels=0) + good, "expected"),
            "many channels": (synthetic_audio.wav_header(channels=65000) + good, "expected"),
            "slow": (synthetic_audio.wav_header(rate=1) + good, "has 1 samples per second; expected 1000 to 768000"),
            "fast": (synthetic_audio.wav_header(rate=10_000_000) + good, "has 10000000 samples per second; expected 1000 to 768000"),
            "nan": (synthetic_audio.wav_header(bits=32, code=3, data_bytes=4000) + nan * 1000, "sample 0 is nan; expected finite numbers"),
            "mp4": (b"\0\0\0\x20ftypM4A " + bytes(100), "MP4 (m4a, mp4, mov)"),
            "webm": (b"\x1a\x45\xdf\xa3" + bytes(100), "Matroska (webm, mkv)"),
            "cut flac": (b"fLaC" + bytes(10), "is not an audio file"),
            "cut ogg": (b"OggS" + bytes(60), "is not an audio file"),
        }
        for name, (content, text) in cases.items():
            with self.subTest(name):
                path = self.folder / "hostile.wav"
                path.write_bytes(content)
                self.refused(fovea("transcribe", MODEL, path), 2, text)
                if name not in ("mp4", "webm", "cut flac", "cut ogg", "empty", "text", "cut header"):
                    self.refused(fovea("transcribe", MODEL, "-", input=content), 2, "standard input: ")

    def test_lengths_that_lie_do_not_matter(self):
        samples = synthetic_audio.voice(1, 3)
        expected = self.transcript(self.wav("a.wav", samples))
        for length in (0xFFFFFFFF, 0x7FFFFFFF, 2 * len(samples) + 1000):
            path = self.folder / "b.wav"
            path.write_bytes(synthetic_audio.wav_header(data_bytes=length) + synthetic_audio.pcm16(samples))
            self.assertEqual(self.transcript(path), expected)

    def test_errors_name_the_option(self):
        path = self.wav("a.wav", synthetic_audio.voice(0.5, 3))
        for options, text in ((["--language", "klingon"], "--language: 'klingon' is unknown; expected a code such as de"),
                              (["--language", "ko"], "--language: ko; expected one of the model's 6 languages"),
                              (["--word-timestamps", "--no-timestamps", "--format", "json"], "--word-timestamps: requires"),
                              (["--max-tokens", "64"], "--max-tokens: 64; expected less than 64")):
            self.refused(fovea("transcribe", MODEL, path, *options), 2, text)
        self.refused(fovea("transcribe", MODEL, self.folder / "none.wav"), 2, "none.wav: does not exist; expected an audio file")
        self.refused(fovea("transcribe", ROOT / "tests/goldens/gpt2_relu", path), 2, "expected")


if __name__ == "__main__":
    unittest.main()
