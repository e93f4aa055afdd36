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
                self.assertGreater(r["divergence"], r["divergence_error"])
                self.assertAlmostEqual(r["loss_difference"], math.log(r["perplexity"] / r["full_perplexity"]), 9)
                self.assertTrue(0 < r["loss_difference_error"] < r["perplexity_error"] / r["perplexity"] < 1)
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

    def test_mixed_types_are_close_to_the_model(self):
        options = ("--layers", "4", "--width", "256", "--heads", "4")
        source = self.folder / "wide"
        self.ok(self.train(source, *options, steps=40))
        full = self.result("eval", source, self.text)
        sizes = {}
        for dtype, most in (("q6_k", 0.003), ("q5_k_m", 0.005), ("Q4_K_M", 0.02), ("q3_k_m", 0.06), ("q2_k", 0.3), ("q2_k_s", 0.3)):
            with self.subTest(dtype):
                out = self.folder / f"{dtype}.gguf"
                r = self.result("convert", source, out, "--dtype", dtype)
                self.assertEqual(r["weights"], dtype.lower())
                sizes[dtype] = r["bytes_after"]
                r = self.result("eval", out, self.text)
                self.assertLess(abs(r["loss"] - full["loss"]), most)
                self.ok(fovea("generate", out, "-p", "The", "-n", "5"))
        self.assertEqual(sorted(sizes.values(), reverse=True), list(sizes.values()))
        self.assertIn(b"Q4_K", self.ok(fovea("plan", self.folder / "Q4_K_M.gguf")).stdout)
        self.ok(fovea("inspect", self.folder / "Q4_K_M.gguf", "The fox", "--out", self.folder / "page.html"))
        # The directory has the numbers of the blocks: trace computes both in fp32.
        back, traces = self.folder / "back", []
        self.ok(fovea("convert", self.folder / "Q4_K_M.gguf", back))
        for model in (back, self.folder / "Q4_K_M.gguf"):
            traces.append(self.folder / f"{model.stem}.safetensors")
            self.ok(fovea("trace", model, "--ids", "3,1,4,1,5", "--out", traces[-1]))
        self.assertEqual(traces[0].read_bytes(), traces[1].read_bytes())

    def test_a_text_calibrates_a_conversion(self):
        source, matrix = self.model(), self.folder / "imatrix.gguf"
        outputs = [self.folder / f"{name}.gguf" for name in ("plain", "calibrated", "again")]
        quantised = ("--dtype", "q4_0")
        self.ok(fovea("convert", source, outputs[0], *quantised))
        self.ok(fovea("convert", source, outputs[1], *quantised, "--calibrate", self.text, "--save-imatrix", matrix))
        self.ok(fovea("convert", source, outputs[2], *quantised, "--imatrix", matrix, "--threads", "1"))
        for out in outputs:
            r = self.result("eval", out, self.text, "--against", source)
            self.assertLess(r["divergence"], 0.3)
        contents = [out.read_bytes() for out in outputs]
        self.assertEqual(contents[1][-1000:], contents[2][-1000:])  # the metadata differ
        self.assertNotEqual(contents[0][-1000:], contents[1][-1000:])

    def test_rows_that_are_not_whole_blocks_get_another_type(self):
        r = self.ok(fovea("convert", self.model(), self.folder / "out.gguf", "--dtype", "q4_k_m"))
        self.assertIn(b"rows of 32 weights are not a multiple of 256: Q5_0 instead of Q4_K", r.stderr)
        self.assertIn(b"bits per parameter", r.stdout)

    def test_invalid_requests_are_refused(self):
        out = self.folder / "out"
        self.ok(fovea("convert", self.model(), out, "--quantize", "int8"))
        self.refused(fovea("convert", self.model(), out), 2, out, "contains a model already")
        self.refused(fovea("convert", out, self.folder / "again", "--quantize", "int4"), 2, out, "quantised already")
        self.refused(fovea("convert", self.folder / "none", self.folder / "x"), 2, "none")
        self.refused(fovea("convert", self.model()), 2, "OUT")
        self.refused(fovea("bench", "--train", "tiny", "--dtype", "int8"), 2, "--dtype")
        self.refused(fovea("convert", self.model(), self.folder / "x", "--dtype", "q4_k_m"), 2, "--dtype", "fp16 in a directory")
        self.refused(fovea("convert", self.model(), self.folder / "x.gguf", "--save-imatrix", self.folder / "i.gguf"), 2,
                     "--save-imatrix", "--calibrate or --imatrix")
        self.refused(fovea("convert", self.model(), self.folder / "x.gguf", "--imatrix", self.text), 2, "text.txt", "importance matrix")
