"""Text encoders in .gguf files of llama.cpp's converter: the vectors and scores of llama.cpp, directories made from them, and back."""
import json
import math
import shutil
import unittest

from support import ROOT, FoveaTest, edit_json, fovea, tensors

GOLDENS = ROOT / "tests/goldens/gguf_encoders"
EXPECTED = json.loads((GOLDENS / "expected.json").read_text())
TEXTS, LLAMA, EXACT = EXPECTED["texts"], EXPECTED["llama.cpp"], EXPECTED["transformers"]
LINES = "".join(text + "\n" for text in TEXTS).encode()
RERANKER = "xlm_roberta_reranker"
ANSWERS = "qwen3_reranker"
EMBEDDERS = sorted({*LLAMA, *EXACT} - {RERANKER, ANSWERS})
# The largest difference of an element of a vector from llama.cpp, which looks up GELU and SiLU in tables of half precision and approximates the exact
# GELU. The differences are 4e-4 at most, but for the 7 layers of gemma_embedding.
TOLERANCES = {"gemma_embedding": 4e-3}


class GgufEncoders(FoveaTest):
    def vectors(self, model):
        return [json.loads(line)["embedding"] for line in self.ok(fovea("embed", model, "--json", "--normalize", input=LINES)).stdout.splitlines()]

    def directory(self, name):
        folder = self.folder / name
        self.ok(fovea("convert", GOLDENS / f"{name}.gguf", folder))
        return folder

    def differ(self, found, wanted):
        self.assertEqual([len(row) for row in found], [len(row) for row in wanted])
        return max(abs(a - b) for row, other in zip(found, wanted) for a, b in zip(row, other))

    def test_vectors_are_those_of_llama_cpp(self):
        for name in sorted(set(LLAMA) & set(EMBEDDERS)):
            with self.subTest(name):
                self.assertLess(self.differ(self.vectors(GOLDENS / f"{name}.gguf"), LLAMA[name]), TOLERANCES.get(name, 1e-3))

    def test_vectors_are_those_of_transformers(self):
        for name, wanted in EXACT.items():
            with self.subTest(name):
                self.assertLess(self.differ(self.vectors(GOLDENS / f"{name}.gguf"), wanted), 3e-6)

    def test_a_directory_and_a_file_made_from_it_have_the_same_vectors_and_tensors(self):
        for name in EMBEDDERS:
            with self.subTest(name):
                folder, file, back = self.directory(name), self.folder / f"{name}.gguf", self.folder / f"{name}-back"
                self.ok(fovea("convert", folder, file, "--dtype", "fp32"))
                self.ok(fovea("convert", file, back))
                wanted = self.vectors(GOLDENS / f"{name}.gguf")
                for other in (folder, file, back):
                    self.assertEqual(self.vectors(other), wanted)
                self.assertEqual(tensors(folder / "model.safetensors"), tensors(back / "model.safetensors"))
                for module in ("modules.json", "1_Pooling/config.json", "2_Dense/model.safetensors", "3_Dense/model.safetensors"):
                    if (folder / module).exists() or (back / module).exists():
                        self.assertEqual((folder / module).read_bytes(), (back / module).read_bytes())

    def scores(self, model):
        found = json.loads(self.ok(fovea("rerank", model, "--query", TEXTS[0], "--json", input=LINES)).stdout)["results"]
        return [each["score"] for each in sorted(found, key=lambda each: each["index"])]

    def test_a_decoder_answers_yes_or_no(self):
        found = self.scores(GOLDENS / f"{ANSWERS}.gguf")
        for score, probability in zip(found, LLAMA[ANSWERS], strict=True):
            self.assertAlmostEqual(score, probability, delta=1e-3)
        original, file = ROOT / "tests/goldens/embedders/qwen3_reranker", self.folder / "words.gguf"
        self.assertEqual(self.scores(original), found)
        self.ok(fovea("convert", original, file))  # as a language model
        self.assertEqual(self.scores(file), found)

    def test_a_decoder_without_a_head_keeps_its_pooling(self):
        original, file = ROOT / "tests/goldens/embedders/qwen3_embedding", self.folder / "decoder.gguf"
        self.ok(fovea("convert", original, file))
        self.assertEqual(self.vectors(file), self.vectors(original))

    def test_scores_are_those_of_llama_cpp(self):
        scores = self.scores
        found = scores(GOLDENS / f"{RERANKER}.gguf")
        for score, logit in zip(found, LLAMA[RERANKER], strict=True):
            self.assertAlmostEqual(score, 1 / (1 + math.exp(-logit)), delta=2e-3)
        folder, file = self.directory(RERANKER), self.folder / "again.gguf"
        self.ok(fovea("convert", folder, file))
        self.assertEqual(scores(folder), found)
        self.assertEqual(scores(file), found)
        self.refused(fovea("embed", file, input=LINES), 2, "pooling_type is 4")
        self.refused(fovea("rerank", GOLDENS / "bert.gguf", "--query", "x", input=LINES), 2, "not a sequence classifier")

    def test_quantised_files_have_similar_vectors(self):
        for name in ("bert", "nomic_bert_moe", "t5_encoder"):
            small = self.folder / f"{name}.gguf"
            self.ok(fovea("convert", GOLDENS / f"{name}.gguf", small, "--dtype", "fp16"))
            self.assertLess(self.differ(self.vectors(small), self.vectors(GOLDENS / f"{name}.gguf")), 5e-3)

    def test_modules_that_a_file_cannot_hold_are_refused(self):
        folder = self.directory("bert")
        pooling = folder / "1_Pooling/config.json"
        edit_json(pooling, {"pooling_mode_mean_tokens": False, "pooling_mode_max_tokens": True})
        self.refused(fovea("convert", folder, self.folder / "max.gguf"), 2, "the pooling is max", "expected mean, cls or lasttoken")
        edit_json(pooling, {"pooling_mode_mean_tokens": True, "pooling_mode_max_tokens": None})
        listed = folder / "modules.json"
        listed.write_text(json.dumps(json.loads(listed.read_text())[:2]))
        done = self.ok(fovea("convert", folder, self.folder / "long.gguf"))
        self.assertIn(b"those of a GGUF file have length 1", done.stderr)
        shutil.rmtree(folder / "1_Pooling")
        self.refused(fovea("convert", folder, self.folder / "none.gguf"), 2, "1_Pooling/config.json")


if __name__ == "__main__":
    unittest.main()
