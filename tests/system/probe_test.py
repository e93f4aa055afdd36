"""fovea eval --probe: a linear classifier on frozen vectors, beside TF-IDF."""
import json
import random

from support import ROOT, FoveaTest, fovea

MODEL = ROOT / "tests/goldens/sentence_model"


class Probe(FoveaTest):
    def labelled(self):
        generator = random.Random(1)
        lines = []
        for _ in range(60):
            thing, sense = generator.choice(["fox", "bird", "light"]), generator.choice(["eye", "night"])
            lines.append(f"the {thing} sees the {sense}\t{sense}")
        return self.file("labelled.tsv", "\n".join(lines) + "\n")

    def probe(self, *more):
        return json.loads(self.ok(fovea("eval", MODEL, "--probe", self.labelled(), "--json", *more)).stdout)

    def test_vectors_and_words_are_compared(self):
        predictions = self.folder / "predictions.jsonl"
        found = self.probe("--predictions", predictions, "--folds", "4", "--cs", "1,100")
        self.assertEqual((found["objective"], found["texts"], found["labels"]), ("probe", 60, ["eye", "night"]))
        self.assertEqual(found["tfidf"]["accuracy"]["value"], 1)
        vectors = found["vectors"][0]
        self.assertEqual((vectors["layer"], vectors["width"], len(vectors["fold_accuracy"])), (None, 10, 4))
        self.assertGreater(vectors["accuracy"]["value"], 0.8)
        self.assertLessEqual(vectors["accuracy"]["low"], vectors["accuracy"]["value"])
        self.assertTrue(set(vectors["c"]) <= {1, 100})
        rows = [json.loads(line) for line in predictions.read_text().splitlines()]
        self.assertEqual(sum(row["vectors"] == row["label"] for row in rows) / 60, vectors["accuracy"]["value"])
        self.assertEqual({row["fold"] for row in rows}, {0, 1, 2, 3})

    def test_layers_are_compared(self):
        found = self.probe("--layer", "0,1", "--pooling", "cls")
        self.assertEqual([(row["layer"], row["width"]) for row in found["vectors"]], [(0, 16), (1, 16)])
        # The embedding of the first token is the same in all texts.
        self.assertLess(found["vectors"][0]["accuracy"]["value"], found["vectors"][1]["accuracy"]["value"])
        text = self.ok(fovea("eval", MODEL, "--probe", self.labelled(), "--layer", "1")).stdout.decode()
        for part in ("majority", "TF-IDF", "layer 1", "accuracy above TF-IDF"):
            self.assertIn(part, text)

    def test_several_labels_and_numbers(self):
        rows = [{"text": "the fox hears", "labels": ["ears", "animal"]}, {"text": "a light sees", "labels": ["eyes"]}, {"text": "the night", "labels": []}]
        several = self.file("several.jsonl", "".join(json.dumps(row) + "\n" for row in rows * 10))
        predictions = self.folder / "predictions.jsonl"
        found = json.loads(self.ok(fovea("eval", MODEL, "--probe", several, "--json", "--predictions", predictions)).stdout)
        self.assertEqual(found["labels"], ["animal", "ears", "eyes"])
        self.assertEqual(found["tfidf"]["accuracy"]["value"], 1)
        self.assertEqual([sorted(json.loads(line)["tfidf"]) for line in predictions.read_text().splitlines()[:3]], [["animal", "ears"], ["eyes"], []])
        numbers = self.file("numbers.tsv", "the fox hears the eye\t2.5\na light sees\t-1\n" * 20)
        found = json.loads(self.ok(fovea("eval", MODEL, "--probe", numbers, "--json", "--predictions", predictions)).stdout)
        self.assertGreater(found["vectors"][0]["r2"]["value"], 0.9)
        self.assertGreater(found["tfidf"]["pearson"]["value"], 0.99)
        self.assertEqual(json.loads(predictions.read_text().splitlines()[0])["number"], 2.5)
        text = self.ok(fovea("eval", MODEL, "--probe", numbers)).stdout.decode()
        for part in ("R2 (95% interval)", "Pearson's correlation", "R2 above TF-IDF"):
            self.assertIn(part, text)
        self.assertNotIn("majority", text)

    def test_the_threads_do_not_matter(self):
        self.assertEqual(self.probe("--threads", "1"), self.probe("--threads", "3"))

    def test_unsuitable_requests_are_refused(self):
        self.refused(fovea("eval", MODEL, self.text, "--folds", "3"), 2, "--folds: requires --probe")
        self.refused(fovea("eval", MODEL, self.text, "--probe", self.labelled()), 2, "--probe: cannot be combined with DATA")
        self.refused(fovea("eval", MODEL, "--probe", self.labelled(), "--layer", "7"), 2, "--layer: 7; expected 0 to")
        self.refused(fovea("eval", MODEL, "--probe", self.labelled(), "--cs", "1,x"), 2, "--cs")
        words = self.file("words.jsonl", '{"tokens": ["a", "b"], "labels": ["x", "y"]}\n' * 20)
        self.refused(fovea("eval", MODEL, "--probe", words), 2, "words.jsonl: has labels of words; expected labels of texts")
        self.refused(fovea("eval", MODEL, "--probe", self.folder / "none.tsv"), 2, "none.tsv")
