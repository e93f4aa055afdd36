"""fovea convert, and the results of eval, generate and bench with the converted models."""
import json
import math
import shutil

from support import FoveaTest, fovea


class Convert(FoveaTest):
    def result(self, *arguments):
        r = fovea(*arguments, "--json")
        self.ok(r)
        return json.loads(r.stdout)

    def test_quantised_models_are_small_and_close(self):
        for bits, least in (("int8", 0.02), ("int4", 0.3)):
            with self.subTest(bits):
                out = self.folder / bits
                r = self.result("convert", self.model(), out, "--quantize", bits)
                self.assertLess(r["bytes_after"], 0.7 * r["bytes_before"])
                r = self.result("eval", out, self.text, "--against", self.model())
                self.assertLess(r["divergence"], least)
                self.assertLess(abs(math.log(r["perplexity"] / r["full_perplexity"])), least)
                self.ok(fovea("generate", out, "-p", "The", "-n", "5"))
                r = self.result("bench", out, "--prompt", "8", "--decode", "2", "--batch", "2")
                self.assertGreater(r["decode_tokens_per_second"], 0)

    def test_a_rounded_cache_is_close_and_a_full_one_exact(self):
        def divergence(*options):
            return self.result("eval", self.model(), self.text, "--against", self.model(), *options)["divergence"]
        self.assertLess(abs(divergence("--cache-dtype", "fp32")), 1e-9)
        self.assertEqual(divergence(), divergence("--cache-dtype", "fp32"))  # the weights are fp32
        for name, most in (("bf16", 1e-4), ("int8", 1e-3)):
            with self.subTest(name):
                self.assertGreater(divergence("--cache-dtype", name), 0)
                self.assertLess(divergence("--cache-dtype", name), most)
                self.ok(fovea("generate", self.model(), "-p", "The", "-n", "5", "--cache-dtype", name))

    def test_a_chat_template_stays_with_the_model(self):
        # Regression: a template in a file of its own was lost, so that the converted model could not chat.
        source = self.folder / "source"
        shutil.copytree(self.model(), source)
        template = "{% for m in messages %}{{ m.content }}\n{% endfor %}"
        (source / "chat_template.jinja").write_text(template)
        out, gguf, back = self.folder / "out", self.folder / "model.gguf", self.folder / "back"
        for start, end in ((source, out), (source, gguf), (gguf, back)):
            self.ok(fovea("convert", start, end))
        for folder in (out, back):
            self.assertEqual(json.loads((folder / "tokenizer_config.json").read_text())["chat_template"], template)

    def test_a_gguf_file_keeps_the_dtype_of_the_model(self):
        source = self.folder / "q8.gguf"
        self.ok(fovea("convert", self.model(), source, "--quantize", "int8"))
        for n, (options, wanted) in enumerate((((), "q8_0"), (("--quantize", "none"), "fp32"), (("--dtype", "bf16"), "bf16"),
                                              (("--quantize", "int4"), "q4_0"))):
            with self.subTest(options=options):
                self.assertEqual(self.result("convert", source, self.folder / f"{n}.gguf", *options)["weights"], wanted)
                self.ok(fovea("generate", self.folder / f"{n}.gguf", "-p", "The", "-n", "3"))

    def test_invalid_requests_are_refused(self):
        out = self.folder / "out"
        self.ok(fovea("convert", self.model(), out, "--quantize", "int8"))
        self.refused(fovea("convert", self.model(), out), 2, out, "contains a model already")
        self.refused(fovea("convert", out, self.folder / "again", "--quantize", "int4"), 2, out, "quantised already")
        self.refused(fovea("convert", self.folder / "none", self.folder / "x"), 2, "none")
        self.refused(fovea("convert", self.model()), 2, "OUT")
        self.refused(fovea("bench", "--train", "tiny", "--dtype", "int8"), 2, "--dtype")
