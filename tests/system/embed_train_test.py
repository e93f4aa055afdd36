"""fovea embed --train: a small model learns examples of each kind and is saved as a complete directory."""
import json
import os
import shutil
import subprocess
import unittest

from memory_test import SANITIZED
from support import ENVIRONMENT, FOVEA, ROOT, FoveaTest, fovea

MODEL = ROOT / "tests/goldens/sentence_model"
WORDS = ["fox", "eye", "light", "bird", "night", "day"]


class EmbedTrain(FoveaTest):
    def train(self, name, content, *more, model=MODEL, out="out"):
        examples = self.file(name, content)
        return fovea("embed", model, "--train", examples, "--out", self.folder / out, "--learning-rate", "3e-3", "--batch", "6",
                     "--json", *more)

    def learns(self, name, content, *more):
        first = json.loads(self.ok(self.train(name, content, "--epochs", "1", *more, out=name + "-1")).stdout)
        last = json.loads(self.ok(self.train(name, content, "--epochs", "40", *more, out=name + "-40")).stdout)
        self.assertLess(last["loss"], 0.7 * first["loss"])
        return last

    def test_pairs_triplets_and_scores_are_learned(self):
        self.learns("pairs.tsv", "".join(f"the {w}\t{w} sees ?\n" for w in WORDS))
        triplets = "".join(json.dumps({"anchor": f"the {w}", "positive": f"a {w}", "negative": f"never {w}"}) + "\n" for w in WORDS)
        self.learns("triplets.jsonl", triplets, "--matryoshka", "4,2")
        scored = "sentence1,sentence2,score\n" + "".join(f"the {w},a {v},{5 if w == v else 0}\n" for w in WORDS for v in WORDS)
        pairs = self.file("dev.csv", scored)
        found = self.learns("scored.csv", scored, "--validation", pairs)
        self.assertGreater(found["spearman"], found["spearman_before"])
        measured = json.loads(self.ok(fovea("embed", self.folder / "scored.csv-40", "--evaluate", pairs, "--json")).stdout)
        self.assertAlmostEqual(measured["spearman"], found["spearman"], places=3)

    def test_each_loss_is_learned(self):
        scored = "sentence1,sentence2,score\n" + "".join(f"the {w},a {v},{i}\n" for i, (w, v) in enumerate(zip(WORDS, WORDS[1:] + WORDS[:1])))
        for loss in ("cosent", "angle"):
            self.learns(f"{loss}.csv", scored, "--loss", loss)
        triplets = "query\tpositive\tnegative_1\tnegative_2\tscores\n" + "".join(
            f"the {w}\ta {w}\tnever {v}\ton {w}\t[2, -1, 0]\n" for w, v in zip(WORDS, WORDS[1:] + WORDS[:1]))
        for loss in ("angle", "triplet", "margin_mse", "kl"):
            self.learns(f"{loss}.tsv", triplets, "--loss", loss, *(("--margin", "1") if loss == "triplet" else ()))
        self.learns("gist.tsv", triplets, "--loss", "gist", "--temperature", "0.2", "--guide", ROOT / "tests/goldens/embedder_losses/model")

    @unittest.skipIf(SANITIZED, "sanitizers take memory")
    def test_a_large_batch_takes_the_memory_of_a_small_one(self):
        pairs = self.file("many.tsv", "".join(f"the {w} {v} {u} sees\ta {w} {v} {u} ?\n" for w in WORDS * 4 for v in WORDS for u in WORDS))

        def peak(batch):
            command = [FOVEA, "embed", MODEL, "--train", pairs, "--out", self.folder / f"batch-{batch}", "--batch", str(batch)]
            with subprocess.Popen(command, env=ENVIRONMENT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
                _, status, usage = os.wait4(process.pid, 0)
                process.returncode = os.waitstatus_to_exitcode(status)
            self.assertEqual(process.returncode, 0)
            return usage.ru_maxrss
        self.assertLess(peak(864), 1.5 * peak(16))

    def test_mined_negatives_are_trained(self):
        pairs = self.file("pairs.tsv", "".join(f"the {w}\t{w} sees ?\n" for w in WORDS))
        more = self.file("more.txt", "the fox and the bird\nlight falls on the eye\nnever in the night\n")
        mined = self.folder / "mined.jsonl"
        judge = ROOT / "tests/goldens/cross_encoder"
        done = json.loads(self.ok(fovea("embed", MODEL, more, "--mine", pairs, "--negatives", "2", "--rerank", judge, "--out", mined, "--json")).stdout)
        self.assertEqual((done["pairs"], done["incomplete"]), (6, 0))
        rows = [json.loads(line) for line in mined.read_text().splitlines()]
        self.assertEqual(list(rows[0]), ["anchor", "positive", "negative_1", "negative_2", "scores"])
        scored = [json.loads(line) for line in self.ok(fovea("rerank", judge, "--query", rows[0]["anchor"], "--json", input="\n".join(
            [rows[0]["positive"], rows[0]["negative_1"]]).encode())).stdout.splitlines()][0]["results"]
        self.assertEqual([round(s, 5) for s in rows[0]["scores"][:2]], [round(each["score"], 5) for each in sorted(scored, key=lambda r: r["index"])])
        self.ok(fovea("embed", MODEL, "--train", mined, "--loss", "kl", "--out", self.folder / "distilled", "--epochs", "1"))
        lines = self.ok(fovea("embed", MODEL, "--mine", pairs, "--max-score", "-2"))
        self.assertEqual(lines.stdout, b"")
        self.assertIn(b"6 pairs with fewer negatives are left out", lines.stderr)

    def test_invalid_mining_is_refused(self):
        pairs = self.file("pairs.tsv", "".join(f"the {w}\t{w} sees ?\n" for w in WORDS))
        self.refused(fovea("embed", MODEL, "--negatives", "2", input=b"x"), 2, "--negatives", "--mine")
        self.refused(fovea("embed", MODEL, "--mine", pairs, "--batch", "2"), 2, "--mine: cannot be combined with --batch")
        self.refused(fovea("embed", MODEL, "--mine", pairs, "--range-max", "2"), 2, "--negatives: 3, but the range has 2 ranks")
        self.refused(fovea("embed", MODEL, "--mine", self.file("scored.csv", "a,b,1\n")), 2, "has scored pairs")
        self.refused(fovea("embed", ROOT / "tests/goldens/sparse_model", "--mine", pairs), 2, "--mine: expected a model of one dense vector per text")

    def test_the_saved_directory_is_complete(self):
        self.ok(self.train("pairs.tsv", "fox\tthe fox\nbird\ta bird\n"))
        out = self.folder / "out"
        for path in MODEL.rglob("*.json"):
            if path.name not in ("texts.json", "config.json", "tokenizer.json", "tokenizer_config.json") or path.parent != MODEL:
                if path.name != "texts.json":
                    self.assertEqual((out / path.relative_to(MODEL)).read_bytes(), path.read_bytes(), path)
        self.assertEqual(len(self.ok(fovea("embed", out, "--prompt-name", "query", input=b"fox\n")).stdout.split()), 10)

    def test_training_adds_modules_to_a_plain_model(self):
        plain = self.folder / "plain"
        shutil.copytree(MODEL, plain)
        (plain / "modules.json").unlink()
        self.ok(self.train("pairs.tsv", "fox\tthe fox\nbird\ta bird\n", model=plain))
        done = self.ok(fovea("embed", self.folder / "out", input=b"fox\n"))
        self.assertEqual(done.stderr, b"")
        self.assertEqual(len(done.stdout.split()), 16)

    def test_the_same_seed_gives_the_same_model(self):
        def weights(out, *more):
            self.ok(self.train("pairs.tsv", "".join(f"the {w}\t{w} sees ?\n" for w in WORDS), "--batch", "4", *more, out=out))
            return (self.folder / out / "model.safetensors").read_bytes()
        first = weights("first")
        self.assertEqual(weights("second", "--threads", "1"), first)
        self.assertNotEqual(weights("third", "--seed", "2"), first)

    def test_a_finished_run_is_kept_and_another_is_refused(self):
        pairs = "fox\tthe fox\nbird\ta bird\n"
        done = json.loads(self.ok(self.train("pairs.tsv", pairs, "--epochs", "2")).stdout)
        self.assertEqual(done["steps"], 2)

        def contents():  # all files except the lock
            return {path: path.read_bytes() for path in (self.folder / "out").rglob("*") if path.is_file() and path.name != ".lock"}
        files = contents()
        again = json.loads(self.ok(self.train("pairs.tsv", pairs, "--epochs", "2")).stdout)
        self.assertEqual((again["steps"], again["loss"]), (2, done["loss"]))
        self.assertTrue(contents() == files)
        self.refused(self.train("pairs.tsv", pairs, "--epochs", "3"), 2, "epochs was 2 and is 3", "--allow-change")
        longer = json.loads(self.ok(self.train("pairs.tsv", pairs, "--epochs", "3", "--allow-change")).stdout)
        self.assertEqual(longer["steps"], 3)
        log = [json.loads(line) for line in (self.folder / "out/log.jsonl").read_text().splitlines()]
        self.assertEqual([line["step"] for line in log if "loss" in line], [1, 2, 3])

    def test_a_dry_run_writes_nothing(self):
        plan = json.loads(self.ok(self.train("pairs.tsv", "fox\tthe fox\nbird\ta bird\n", "--epochs", "3", "--dry-run")).stdout)
        self.assertEqual((plan["objective"], plan["steps"], plan["training_sequences"]), ("embedding", 3, 2))
        self.assertFalse((self.folder / "out").exists())

    def test_invalid_requests_are_refused(self):
        self.refused(self.train("pairs.tsv", "a\tb\n", "--patience", "2"), 2, "--patience", "--validation")
        self.refused(fovea("embed", MODEL, "--dry-run", input=b"x"), 2, "--dry-run", "--train")
        self.refused(self.train("bad.tsv", "a\tb\nc\n"), 2, "bad.tsv:2")
        self.refused(self.train("none.tsv", ""), 2, "no examples")
        self.refused(self.train("pairs.tsv", "a\tb\n", "--loss", "triplet"), 2, "--loss: triplet, but ", "has pairs; expected triplets")
        self.refused(self.train("pairs.tsv", "a\tb\n", "--loss", "gist"), 2, "--guide: not given with --loss gist")
        self.refused(self.train("pairs.tsv", "a\tb\n", "--margin", "1"), 2, "--margin: given with --loss ranking")
        self.refused(self.train("triplets.tsv", "a\tb\tc\n", "--loss", "kl"), 2, "triplets.tsv:1: has 0 scores of a teacher")
        self.refused(fovea("embed", MODEL, "--margin", "1", input=b"x"), 2, "--margin: requires --train")
        self.refused(self.train("pairs.tsv", "a\tb\n", "--matryoshka", "11"), 2, "--matryoshka: 11; expected 1 to")
        self.refused(self.train("pairs.tsv", "a\tb\n", "--validation", self.folder / "none"), 2, "none")
        self.refused(fovea("embed", MODEL, "--train", self.text), 2, "--out")
        self.refused(fovea("embed", MODEL, "--epochs", "2", input=b"x"), 2, "--epochs")

    def pooled_by(self, *modes):
        """Returns a copy of the model with these poolings and no modules after them."""
        folder = self.folder / "-".join(modes)
        shutil.copytree(MODEL, folder)
        (folder / "1_Pooling/config.json").write_text(json.dumps({"pooling_mode": modes}))
        (folder / "modules.json").write_text(json.dumps(json.loads((folder / "modules.json").read_text())[:2]))
        return folder

    def test_the_weights_of_layers_are_learned_and_saved(self):
        pairs = "".join(f"the {w}\t{w} sees ?\n" for w in WORDS)
        scored = self.file("dev.csv", "sentence1,sentence2,score\n" + "".join(f"the {w},a {v},{5 if w == v else 0}\n" for w in WORDS for v in WORDS))
        done = fovea("embed", self.pooled_by("mean"), "--train", self.file("pairs.tsv", pairs), "--out", self.folder / "out", "--learning-rate", "3e-3",
                     "--batch", "6", "--epochs", "20", "--learn-pooling", "layers", "--validation", scored)
        text = self.ok(done).stdout.decode()
        self.assertIn("vector of a text: mean of the tokens; layers 0 to ", text)
        weights = [float(w) for w in text.split("weights ")[1].split()]
        self.assertAlmostEqual(sum(weights), 1, places=2)
        self.assertGreater(max(weights) - min(weights), 0.05)
        self.assertIn(text.split("vector of a text: ")[1].strip(), self.ok(fovea("doctor", self.folder / "out")).stdout.decode())
        modules = json.loads((self.folder / "out/modules.json").read_text())
        self.assertEqual([m["type"].rsplit(".")[-1] for m in modules][:3], ["Transformer", "WeightedLayerPooling", "Pooling"])
        self.assertTrue(json.loads((self.folder / "out/config.json").read_text())["output_hidden_states"])
        # The saved directory gives the vectors that were measured at the end of the training.
        measured = json.loads(self.ok(fovea("embed", self.folder / "out", "--evaluate", scored, "--json")).stdout)["spearman"]
        log = [json.loads(line) for line in (self.folder / "out/log.jsonl").read_text().splitlines()]
        self.assertAlmostEqual(measured, [line["spearman"] for line in log if "spearman" in line][-1], places=3)

    def test_the_weights_of_tokens_are_learned_and_saved(self):
        pairs = "".join(f"the {w}\t{w} sees ?\n" for w in WORDS)
        mean = self.pooled_by("mean")

        def files(out, *more):
            self.ok(self.train("pairs.tsv", pairs, "--epochs", "6", "--learn-pooling", "tokens", *more, model=mean, out=out))
            folder = self.folder / out
            return [(folder / name).read_bytes() for name in ("model.safetensors", "1_AttentionPooling/model.safetensors")]
        first = files("first")
        self.assertEqual(files("threads", "--threads", "1"), first)
        shown = self.ok(fovea("doctor", self.folder / "first")).stdout.decode()
        self.assertIn("learned attention over the tokens", shown)
        vectors = self.ok(fovea("embed", self.folder / "first", input=b"the fox\nfox\n")).stdout.split(b"\n")
        self.assertEqual(len(vectors[0].split()), 16)
        self.ok(self.train("pairs.tsv", pairs, "--epochs", "1", "--learn-pooling", "tokens", model=self.folder / "first", out="further"))
        self.refused(self.train("pairs.tsv", pairs, "--learn-pooling", "tokens", model=self.pooled_by("cls", "mean"), out="none"), 2,
                     "--learn-pooling: tokens, but the model concatenates 2 poolings; expected one")
