"""Conversions that crashed the program, or wrote a broken model that looked valid."""
import collections
import json
import resource
import shutil
import signal
import struct
import unittest

from support import ROOT, FoveaTest, fovea


class Convert(FoveaTest):
    def result(self, *arguments):
        return json.loads(self.ok(fovea(*arguments, "--json")).stdout)

    def dtypes(self, folder):
        """Returns the number of tensors of each dtype."""
        data = (folder / "model.safetensors").read_bytes()
        header = json.loads(data[8:8 + int.from_bytes(data[:8], "little")])
        return collections.Counter(tensor["dtype"] for name, tensor in header.items() if name != "__metadata__")

    def traced(self, model):
        out = self.folder / "trace.safetensors"
        self.ok(fovea("trace", model, "--ids", "3,1,4,1,5", "--out", out))
        return out.read_bytes()

    def test_a_directory_is_quantised_only_on_request(self):
        """A directory converted from a .gguf file kept the quantised blocks for any --dtype and --quantize; transformers read the blocks as
        weights and generated nonsense. The weights are now quantised only with int8 and int4."""
        for source in ("model.gguf", "quantised"):
            self.ok(fovea("convert", self.model(), self.folder / source, "--quantize", "int8"))
            for n, (options, wanted) in enumerate((((), "F32"), (("--dtype", "fp32"), "F32"), (("--dtype", "bf16"), "BF16"),
                                                  (("--quantize", "none"), "F32"), (("--quantize", "none", "--dtype", "fp16"), "F16"))):
                with self.subTest(source=source, options=options):
                    out = self.folder / f"{source}-{n}"
                    r = self.result("convert", self.folder / source, out, *options)
                    self.assertEqual(r["weights"], {"F32": "fp32", "BF16": "bf16", "F16": "fp16"}[wanted])
                    self.assertNotIn("quantization_config", json.loads((out / "config.json").read_text()))
                    self.assertEqual(set(self.dtypes(out)), {wanted})
                    self.assertFalse([name for name in (out / "model.safetensors").read_bytes().split(b'"') if name.endswith(b"_scale")])
                    if wanted == "F32" and source == "model.gguf":
                        self.assertEqual(self.traced(out), self.traced(self.folder / source))
            out = self.folder / f"{source}-int8"
            self.assertIn("int8", self.result("convert", self.folder / source, out, "--quantize", "int8")["weights"])
            self.assertIn("quantization_config", json.loads((out / "config.json").read_text()))
            self.assertIn("I8", self.dtypes(out))
            self.assertEqual(self.result("plan", out)["parameters"], self.result("plan", self.model())["parameters"])

    def test_the_bias_of_the_decoder_of_a_masked_language_model_is_used(self):
        """Checkpoints have the bias of the words twice. If the two differed, the other one was used than that with which transformers computes,
        and converted copies kept the wrong one."""
        source, wanted, out = (self.folder / name for name in ("source", "wanted", "out"))
        for folder in (source, wanted):
            shutil.copytree(ROOT / "tests/goldens/classifiers/masks", folder)
        data = (source / "model.safetensors").read_bytes()
        begin = 8 + int.from_bytes(data[:8], "little")
        header, values = json.loads(data[8:begin]), data[begin:]
        bias = header["cls.predictions.bias"]
        first, last = bias["data_offsets"]
        other = struct.pack(f"<{(last - first) // 4}f", *(i % 5 - 2 for i in range((last - first) // 4)))
        header["cls.predictions.decoder.bias"] = {**bias, "data_offsets": [len(values), len(values) + last - first]}
        for folder, head, body in ((source, header, values + other), (wanted, None, values[:first] + other + values[last:])):
            text = json.dumps(head).encode() if head else data[8:begin]
            (folder / "model.safetensors").write_bytes(len(text).to_bytes(8, "little") + text + body)
        self.ok(fovea("convert", source, out))
        self.assertEqual(self.traced(source), self.traced(wanted))
        self.assertEqual(self.traced(out), self.traced(wanted))

    def test_a_sentence_model_keeps_its_modules(self):
        """convert wrote the Transformer of a sentence-transformers directory without modules.json and the folders of its modules, so that the
        result pooled tokens by their mean and had other vectors."""
        source, out = ROOT / "tests/goldens/sentence_model", self.folder / "out"
        self.ok(fovea("convert", source, out))
        files = [path.relative_to(source) for path in source.rglob("*.json") if path.name not in ("texts.json", "config.json")]
        self.assertIn("modules.json", map(str, files))
        for path in [*files, "1_Pooling/config.json", "2_Dense/config.json", "2_Dense/model.safetensors", "3_LayerNorm/model.safetensors"]:
            self.assertTrue((out / path).is_file(), path)
        texts = self.file("texts", "a red fox\nblue\n")
        vectors = [self.ok(fovea("embed", model, texts, "--format", "jsonl")).stdout for model in (source, out)]
        self.assertEqual(*vectors)

    def test_all_chat_templates_are_kept(self):
        """The templates in additional_chat_templates were lost when a model was converted, and chat_template.jinja was lost if the config
        named several templates, although the file takes precedence."""
        source, out = self.folder / "source", self.folder / "out"
        shutil.copytree(self.model(), source)
        config = json.loads((source / "tokenizer_config.json").read_text())
        config["chat_template"] = [{"name": "default", "template": "old"}, {"name": "listed", "template": "L"}]
        (source / "tokenizer_config.json").write_text(json.dumps(config))
        (source / "chat_template.jinja").write_text("D")
        (source / "additional_chat_templates").mkdir()
        (source / "additional_chat_templates/tool_use.jinja").write_text("T")
        self.ok(fovea("convert", source, out))
        self.ok(fovea("convert", out, self.folder / "out.gguf"))
        self.ok(fovea("convert", self.folder / "out.gguf", self.folder / "again"))
        for folder in (out, self.folder / "again"):
            found = json.loads((folder / "tokenizer_config.json").read_text())["chat_template"]
            self.assertEqual({each["name"]: each["template"] for each in found}, {"default": "D", "listed": "L", "tool_use": "T"})

    def test_models_without_a_gguf_architecture_are_refused(self):
        """convert ENCODER x.gguf ended with SIGFPE: a division by the number of decoder heads, which is 0 in an encoder."""
        encoder, pairs = ROOT / "tests/goldens/classifiers/words", self.folder / "translator"
        source = self.file("source", "red dog\n" * 40)
        self.ok(fovea("train", "--preset", "translate-tiny", "--pairs", source, source, "--steps", "2", "--tokenizer", "bpe:270",
                      "--evaluate-every", "0", "--out", pairs))
        for model in (encoder, pairs):
            out = self.folder / "x.gguf"
            self.refused(fovea("convert", model, out), 2, "has an encoder", "GGUF architecture")
            self.assertFalse(out.exists())

    def test_a_full_disk_leaves_no_files(self):
        """A conversion that failed left an incomplete folder, and the next attempt reported that the folder already contained a model."""
        def little_room():
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
        self.model()
        for there_before in (False, True):
            with self.subTest(there_before=there_before):
                parent = self.folder / f"parent{there_before}"
                out = parent / "out"
                (out if there_before else parent).mkdir(parents=True)
                before = sorted(parent.rglob("*"))
                self.refused(fovea("convert", self.model(), out, preexec_fn=little_room), 1, "cannot be written")
                self.assertEqual(sorted(parent.rglob("*")), before)
                if there_before:
                    (out / "README.md").write_text("mine")
                self.ok(fovea("convert", self.model(), out))
                self.ok(fovea("generate", out, "-p", "The", "-n", "3"))
                self.assertEqual((out / "README.md").exists(), there_before)
                self.assertEqual([path.name for path in out.parent.iterdir()], ["out"])

    def test_non_finite_numbers_are_refused(self):
        """NaN became 0 in quantised weights, so a damaged model looked valid."""
        weights = self.model() / "model.safetensors"
        data = bytearray(weights.read_bytes())
        length = 8 + int.from_bytes(data[:8], "little")
        header = json.loads(data[8:length])
        name = next(name for name in header if name.endswith("c_fc.weight") or name.endswith("up_proj.weight"))
        begin = length + header[name]["data_offsets"][0]
        for bits in (b"\0\0\xc0\x7f", b"\0\0\x80\x7f"):
            data[begin:begin + 4] = bits
            weights.write_bytes(data)
            for out in ("x.gguf", "x"):
                for to in ("int8", "int4"):
                    self.refused(fovea("convert", self.model(), self.folder / out, "--quantize", to), 2, "1 of", name.rsplit(".", 1)[0] if out == "x" else "blk.", "finite")
                    self.assertFalse((self.folder / out).exists())


if __name__ == "__main__":
    unittest.main()
