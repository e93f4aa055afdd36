"""Models of embeddings only, and encoders that tell replaced tokens."""
import json
import os
import shutil
import subprocess
import unittest

from support import ROOT, FoveaTest, fovea

PYTHON = os.environ.get("PEERS_PYTHON")
MODEL = ROOT / "tests/goldens/sentence_model"
OPENED = """
import sys, json
from sentence_transformers import SentenceTransformer
model = SentenceTransformer(sys.argv[1], trust_remote_code=True)
print(json.dumps([[float(x) for x in row] for row in model.encode(sys.argv[2:])]))
"""


class WordVectors(FoveaTest):
    def text_of_topics(self):
        topics = [["fox", "bird", "wolf", "deer"], ["bread", "soup", "rice", "cake"]]
        return self.file("topics.txt", "".join(" ".join(topics[i % 2][(i * j + j) % 4] for j in range(8)) + "\n" for i in range(300)))

    def skip_gram(self, out, *more):
        return fovea("train", self.text_of_topics(), "--objective", "skip_gram", "--tokenizer", "wordpiece:60", "--width", "16", "--context", "32",
                     "--steps", "150", "--batch", "8", "--learning-rate", "0.02", "--weight-decay", "0", "--subsampling", "0", "--warmup", "3",
                     "--dtype", "fp32", "--out", self.folder / out, *more)

    def vectors(self, model, *texts):
        lines = self.ok(fovea("embed", model, "--format", "jsonl", input="\n".join(texts).encode() + b"\n")).stdout.splitlines()
        return [json.loads(line) for line in lines]

    def opened_by_sentence_transformers(self, model, *texts):
        done = subprocess.run([PYTHON, "-c", OPENED, str(model), *texts], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False,
                              timeout=280, env={**os.environ, "HF_HUB_OFFLINE": "1"})
        self.assertEqual(done.returncode, 0, done.stderr[-3000:])
        return json.loads(done.stdout.splitlines()[-1])

    def test_skip_gram_learns_topics(self):
        plan = json.loads(self.ok(self.skip_gram("out", "--dry-run", "--json")).stdout)
        self.assertEqual(plan["objective"], "skip_gram")
        self.ok(self.skip_gram("out"))
        scored = self.file("dev.csv", "sentence1,sentence2,score\nfox,wolf,5\nfox,deer,5\nfox,soup,0\nbread,rice,5\nbread,bird,0\ncake,deer,0\n")
        found = json.loads(self.ok(fovea("embed", self.folder / "out", "--evaluate", scored, "--json")).stdout)
        self.assertGreater(found["pearson"], 80)
        # They can be probed and trained further.
        labelled = self.file("labelled.tsv", "".join(f"the {w}\t{'animal' if w in 'fox bird wolf deer' else 'food'}\n" for w in
                                                     ("fox", "soup", "wolf", "rice", "deer", "cake", "bird", "bread") * 3))
        probe = json.loads(self.ok(fovea("eval", self.folder / "out", "--probe", labelled, "--json")).stdout)
        self.assertEqual(probe["vectors"][0]["accuracy"]["value"], 1)
        self.ok(fovea("embed", self.folder / "out", "--train", self.file("pairs.tsv", "fox\twolf\nsoup\trice\n"), "--out", self.folder / "more"))
        self.assertEqual(len(self.vectors(self.folder / "more", "fox soup")), 1)

    def test_the_table_of_any_model_becomes_word_vectors(self):
        self.ok(fovea("convert", MODEL, self.folder / "static", "--static-vectors"))
        out = self.folder / "static"
        self.assertEqual(sorted(path.name for path in out.iterdir()), ["0_StaticEmbedding", "modules.json"])
        self.assertEqual(self.ok(fovea("embed", out, input=b"the fox\n")).stderr, b"")
        self.assertIn("mean of the tokens", self.ok(fovea("doctor", out)).stdout.decode())
        self.refused(fovea("convert", MODEL, out, "--static-vectors"), 2, "contains a model already")
        self.refused(fovea("embed", out, "--train", self.file("pairs.tsv", "fox\tthe fox\n"), "--out", self.folder / "no", "--learn-pooling", "tokens"),
                     2, "--learn-pooling: given for a model of embeddings only")
        self.refused(fovea("convert", MODEL, self.folder / "no", "--static-vectors", "--quantize", "int8"), 2, "--static-vectors")

    @unittest.skipUnless(PYTHON, "needs PEERS_PYTHON, a Python with sentence-transformers")
    def test_sentence_transformers_computes_the_same_vectors(self):
        self.ok(fovea("convert", MODEL, self.folder / "static", "--static-vectors"))
        mean = self.folder / "mean"
        shutil.copytree(MODEL, mean)
        (mean / "1_Pooling/config.json").write_text('{"pooling_mode": "mean", "embedding_dimension": 16}')
        (mean / "modules.json").write_text(json.dumps(json.loads((mean / "modules.json").read_text())[:2]))
        for kind in ("layers", "tokens"):
            pairs = self.file("pairs.tsv", "the fox\tfox\nthe bird\ta bird\nthe eye\teye sees\n")
            self.ok(fovea("embed", mean, "--train", pairs, "--out", self.folder / kind, "--learn-pooling", kind, "--learning-rate", "3e-3"))
        for model in ("static", "layers", "tokens"):
            texts = ["the fox sees the bird", "night"]
            ours, theirs = self.vectors(self.folder / model, *texts), self.opened_by_sentence_transformers(self.folder / model, *texts)
            for a, b in zip(ours, theirs):
                self.assertEqual(len(a["embedding"]), len(b))
                for x, y in zip(a["embedding"], b):
                    self.assertAlmostEqual(x, y, places=5, msg=model)


class ReplacedTokens(FoveaTest):
    def train(self, out, *more):
        lines = self.file("lines.txt", "the cat sat on a mat\n" * 300)
        spec = self.file("encoder.json", json.dumps({
            "context": 32, "width": 32, "token_types": 2, "decoder": None,
            "encoder": {"layers": 1, "embedding_norm": True, "final_norm": False, "placement": {"input": False, "sum": True},
                        "attention": {"heads": 4}, "ffn": {"width": 64, "activation": "gelu"}}}))
        return fovea("train", lines, "--config", spec, "--objective", "replaced_tokens", "--tokenizer", "wordpiece:60", "--steps", "20", "--batch", "8",
                     "--warmup", "3", "--dtype", "fp32", "--out", self.folder / out, *more)

    def test_a_model_is_trained_and_fine_tuned(self):
        self.ok(self.train("out"))
        config = json.loads((self.folder / "out/config.json").read_text())
        self.assertEqual((config["model_type"], config["architectures"]), ("electra", ["ElectraForPreTraining"]))
        generator = json.loads((self.folder / "out/generator/config.json").read_text())
        self.assertEqual((generator["architectures"], generator["embedding_size"], generator["hidden_size"]), (["ElectraForMaskedLM"], 32, 8))
        log = [json.loads(line) for line in (self.folder / "out/log.jsonl").read_text().splitlines()]
        self.assertTrue({"generator_loss", "detection_loss"} <= set(next(line for line in log if "loss" in line)))
        self.assertIn("mcc", [line for line in log if "eval_loss" in line][-1])
        labels = self.file("labels.tsv", "the cat\tanimal\na mat\tthing\n" * 20)
        self.ok(fovea("train", "--labels", labels, "--from", self.folder / "out", "--steps", "5", "--batch", "4", "--warmup", "1", "--out", self.folder / "tuned"))
        self.assertEqual(json.loads((self.folder / "tuned/config.json").read_text())["architectures"], ["ElectraForSequenceClassification"])
        masked = self.ok(fovea("classify", self.folder / "out/generator", "the [MASK] sat on a mat", "--json")).stdout
        self.assertTrue(masked)
        self.refused(self.train("other", "--from", self.folder / "out"), 2, "--tokenizer: has no effect")

    @unittest.skipUnless(PYTHON, "needs PEERS_PYTHON, a Python with transformers")
    def test_transformers_opens_the_directories(self):
        self.ok(self.train("out"))
        program = ("import sys; from transformers import ElectraForPreTraining as P, ElectraForMaskedLM as M\n"
                   "for c, d in ((P, ''), (M, '/generator')):\n"
                   "    m, info = c.from_pretrained(sys.argv[1] + d, output_loading_info=True)\n"
                   "    assert not info['missing_keys'] and not info['unexpected_keys'], info\n")
        done = subprocess.run([PYTHON, "-c", program, str(self.folder / "out")], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False,
                              timeout=280, env={**os.environ, "HF_HUB_OFFLINE": "1"})
        self.assertEqual(done.returncode, 0, done.stderr[-3000:])


if __name__ == "__main__":
    unittest.main()
