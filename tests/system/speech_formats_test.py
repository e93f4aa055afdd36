"""Speech and translation models in the formats of CTranslate2 and whisper.cpp: files like those of CTranslate2's converters, and equal texts
after a round trip."""
import json
import shutil
import struct
import unittest
import zlib

import other_formats
import synthetic_audio
from support import ROOT, FoveaTest, fovea
from transcribe_test import GOLDENS, MODEL, arguments_of

TRANSLATION = ROOT / "tests/goldens/ctranslate2/translation_model"


def stored(folder):
    """The tensors of a directory by name: dtype, shape and bytes."""
    content = (folder / "model.safetensors").read_bytes()
    length = struct.unpack("<Q", content[:8])[0]
    header = json.loads(content[8:8 + length])
    return {name: (entry["dtype"], entry["shape"], content[8 + length:][slice(*entry["data_offsets"])])
            for name, entry in header.items() if name != "__metadata__"}


class SpeechFormatsTest(FoveaTest):
    def setUp(self):
        super().setUp()
        self.audio = self.folder / "a.wav"
        synthetic_audio.write_wav(self.audio, synthetic_audio.voice(7, 5))

    def convert(self, source, name, *options):
        target = self.folder / name
        self.ok(fovea("convert", source, target, *options))
        return target

    def segments(self, model, *options):
        result = self.ok(fovea("transcribe", model, self.audio, "--json", "--word-timestamps", *arguments_of({"options": options})))
        return json.loads(result.stdout)["segments"]

    def as_lines(self, vocabulary):
        """Replaces a list of tokens by a text with one in each line, as releases of CTranslate2 before 3.16 wrote it."""
        tokens = json.loads(vocabulary.read_text())
        vocabulary.with_suffix(".txt").write_text("".join(token + "\n" for token in tokens))
        vocabulary.unlink()

    def test_files_are_those_of_ctranslate2(self):
        goldens = json.loads((GOLDENS / "ctranslate2.json").read_text())
        options = {"float32": ["--dtype", "fp32"], "float16": ["--dtype", "fp16"], "int8_float32": ["--dtype", "fp32", "--quantize", "int8"]}
        for kind, source in (("speech", MODEL), ("translation", TRANSLATION)):
            for quantization, golden in goldens[kind].items():
                with self.subTest(kind=kind, quantization=quantization):
                    made = self.convert(source, f"{kind} {quantization}", "--ctranslate2", *options[quantization])
                    specification, revision, variables = other_formats.read_ct2(made / "model.bin")
                    self.assertEqual([specification, revision], [golden["specification"], golden["revision"]])
                    found = {name: [type_, shape, zlib.crc32(data)] for name, (type_, shape, data) in variables.items()}
                    # Sinusoids of several libraries differ in the last bit.
                    close = {name for name in found if kind == "translation" and name.endswith("encodings")}
                    self.assertEqual({name: v[:2] for name, v in found.items()}, {name: v[:2] for name, v in golden["variables"].items()})
                    self.assertEqual({name: v for name, v in found.items() if name not in close},
                                     {name: v for name, v in golden["variables"].items() if name not in close})
                    self.assertEqual(json.loads((made / "config.json").read_text()), golden["config"])

    def test_ctranslate2_round_trip_keeps_text_and_weights(self):
        expected = self.segments(MODEL)
        there = self.convert(MODEL, "there", "--ctranslate2")
        self.assertEqual(self.segments(there), expected)
        back = self.convert(there, "back")
        self.assertEqual({name: v for name, v in stored(back).items() if "embed_positions" not in name},
                         {name: v for name, v in stored(MODEL).items() if "embed_positions" not in name})
        self.assertEqual(self.segments(back), expected)
        (there / "tokenizer.json").unlink()  # the list of tokens is enough
        self.assertEqual(self.segments(there), expected)
        self.as_lines(there / "vocabulary.json")
        self.assertEqual(self.segments(there), expected)
        whole = self.convert(MODEL, "int8", "--ctranslate2", "--quantize", "int8", "--dtype", "fp32")
        dequantised = self.convert(whole, "dequantised", "--dtype", "fp32")
        self.assertEqual(self.segments(whole, "--dtype", "fp32"), self.segments(dequantised))
        self.assertTrue(self.segments(whole))

    def test_translations_are_those_of_ctranslate2(self):
        golden = json.loads((GOLDENS / "ctranslate2.json").read_text())["translation"]["float32"]["texts"]
        there = self.convert(TRANSLATION, "there", "--ctranslate2", "--dtype", "fp32")
        (there / "vocab.json").unlink()  # CTranslate2's converter does not write it
        (there / "tokenizer_config.json").unlink()
        lines = "".join(text + "\n" for text, _ in golden)
        older = self.folder / "older"
        shutil.copytree(there, older)
        self.as_lines(older / "shared_vocabulary.json")
        for model in (TRANSLATION, there, self.convert(there, "back"), older):
            result = self.ok(fovea("translate", model, "--beams", "1", "--dtype", "fp32", "--max-tokens", "31", input=lines.encode()))
            found = result.stdout.decode().splitlines()
            self.assertEqual(found, [text for _, text in golden])

    def test_ggml_round_trip_keeps_text_and_weights(self):
        # A ggml file has no list of suppressed tokens: that of the reference implementation is used.
        plain = self.folder / "plain"
        shutil.copytree(MODEL, plain)
        path = plain / "generation_config.json"
        settings = json.loads(path.read_text())
        there = self.convert(MODEL, "model.bin")
        back = self.convert(there, "back")
        made = json.loads((back / "generation_config.json").read_text())
        for key in ("suppress_tokens", "begin_suppress_tokens", "alignment_heads"):
            settings[key] = made.get(key)
        settings = {key: value for key, value in settings.items() if value is not None}
        path.write_text(json.dumps(settings))
        self.assertEqual(stored(back)["model.encoder.conv1.weight"], stored(MODEL)["model.encoder.conv1.weight"])
        expected = self.segments(plain)
        self.assertEqual(self.segments(there), expected)
        self.assertEqual(self.segments(back), expected)
        sizes, filters, tokens, tensors = other_formats.read_ggml(there)
        self.assertEqual(sizes, [436, 150, 32, 2, 2, 64, 32, 2, 2, 80, 1])
        self.assertEqual(filters, (80, 201))
        self.assertEqual(tokens[ord("a")], b"a")
        self.assertEqual(tensors["encoder.conv1.bias"][:2], (0, [32, 1]))
        self.assertEqual(tensors["decoder.token_embedding.weight"][2], stored(MODEL)["model.decoder.embed_tokens.weight"][2])
        for dtype, kind in (("q8_0", 8), ("q5_1", 7), ("q5_0", 6), ("q4_1", 3), ("q4_0", 2)):
            packed = self.convert(MODEL, f"{dtype}.bin", "--dtype", dtype)
            self.assertEqual(other_formats.read_ggml(packed)[3]["encoder.blocks.0.mlp.0.weight"][0], kind)
            again = self.convert(packed, f"{dtype} back", "--dtype", "fp32")
            self.assertEqual(self.segments(packed, "--dtype", "fp32"), self.segments(again, "--dtype", "fp32"))

    def test_hostile_files_get_one_line(self):
        there = self.convert(MODEL, "there", "--ctranslate2")
        ggml = self.convert(MODEL, "model.bin")
        for path, model, limits in ((there / "model.bin", there, (0, 3, 9, 40, 500, 20000)), (ggml, ggml, (4, 30, 60, 70000, 90000))):
            content = path.read_bytes()
            for length in limits:
                path.write_bytes(content[:length])
                result = fovea("transcribe", model, self.audio)
                self.assertEqual(result.returncode, 2)
                self.assertEqual(result.stderr.count(b"\n"), 1)
                self.assertIn(b"expected", result.stderr)
            for place in range(8, 600, 7):  # sizes that lie
                path.write_bytes(content[:place] + b"\xff\xff\xff\x7f" + content[place + 4:])
                result = fovea("transcribe", model, self.audio)
                # A weight that is not finite makes logits that are not.
                self.assertIn(result.returncode, (0, 1, 2) if b"not finite" in result.stderr else (0, 2))
                self.assertLessEqual(result.stderr.count(b"fovea: error"), 1)
            path.write_bytes(content)
        self.refused(fovea("convert", MODEL, self.folder / "a.bin", "--dtype", "q4_k_m"), 2, "expected fp32, fp16, q8_0")
        self.refused(fovea("convert", ROOT / "tests/goldens/gpt2_relu", self.folder / "b", "--ctranslate2"), 2, "expected")


if __name__ == "__main__":
    unittest.main()
