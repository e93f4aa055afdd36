"""fovea embed --train: a small model learns examples of each kind and is saved as a complete directory."""
import json
import shutil

from support import ROOT, FoveaTest, fovea

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
        self.assertEqual([line["step"] for line in log], [1, 2, 3])

    def test_a_dry_run_writes_nothing(self):
        plan = json.loads(self.ok(self.train("pairs.tsv", "fox\tthe fox\nbird\ta bird\n", "--epochs", "3", "--dry-run")).stdout)
        self.assertEqual((plan["objective"], plan["steps"], plan["training_sequences"]), ("embedding", 3, 2))
        self.assertFalse((self.folder / "out").exists())

    def test_invalid_requests_are_refused(self):
        self.refused(self.train("pairs.tsv", "a\tb\n", "--patience", "2"), 2, "--patience", "--validation")
        self.refused(fovea("embed", MODEL, "--dry-run", input=b"x"), 2, "--dry-run", "--train")
        self.refused(self.train("bad.tsv", "a\tb\nc\n"), 2, "bad.tsv: record 2")
        self.refused(self.train("none.tsv", ""), 2, "no examples")
        self.refused(self.train("pairs.tsv", "a\tb\n", "--matryoshka", "11"), 2, "--matryoshka: 11; expected 1 to")
        self.refused(self.train("pairs.tsv", "a\tb\n", "--validation", self.folder / "none"), 2, "none")
        self.refused(fovea("embed", MODEL, "--train", self.text), 2, "--out")
        self.refused(fovea("embed", MODEL, "--epochs", "2", input=b"x"), 2, "--epochs")
