"""Training on labels: the kinds of labels, the shapes of models, the scores, and errors."""
import json
import os
import random
import subprocess
import unittest

from support import FOVEA, ROOT, FoveaTest, fovea

PYTHON = os.environ.get("PEERS_PYTHON")
DECODER = ["--layers", "1", "--heads", "2"]
ENCODER = ["--encoder-layers", "1", "--encoder-heads", "2"]
SMALL = ["--width", "32", "--context", "32", "--batch", "8", "--warmup", "3", "--seed", "7",
         "--dtype", "fp32", "--learning-rate", "0.01", "--tokenizer", "bpe:300", "--save-every", "0"]


class Labels(FoveaTest):
    def lines(self, name, line, count=120):
        generator = random.Random(3)
        text = ""
        for _ in range(count):
            good, long = generator.random() < 0.5, generator.random() < 0.5
            film = ("a long film that is " if long else "a film that is ") + ("lovely" if good else "awful")
            text += line(film, good, long) + "\n"
        return self.file(name, text)

    def one(self):
        return self.lines("one.jsonl", lambda film, good, long: json.dumps({"text": film, "label": "good" if good else "bad"}))

    def several(self):
        return self.lines("several.jsonl", lambda film, good, long: json.dumps(
            {"text": film, "labels": [name for name, has in (("good", good), ("long", long)) if has]}))

    def numbers(self):
        return self.lines("numbers.jsonl", lambda film, good, long: json.dumps({"text": film, "label": 1.5 * good - 0.5 * long + 0.25}))

    def train(self, labels, out, *more, steps=60):
        shape = [] if "--preset" in more else DECODER
        self.ok(fovea("train", "--labels", labels, "--out", self.folder / out, *shape, *SMALL, "--steps", steps, *more))
        return self.folder / out

    def evaluated(self, model, labels):
        return json.loads(self.ok(fovea("eval", model, "--labels", labels, "--json")).stdout)

    def test_one_label_has_scores_and_a_confusion_matrix(self):
        labels = self.one()
        model = self.train(labels, "one", "--best-by", "mcc", "--patience", "3", "--evaluate-every", "10", "--class-weights", "balanced",
                           steps=200)
        found = self.evaluated(model, labels)
        self.assertEqual((found["objective"], found["accuracy"], found["f1"], found["f1_micro"], found["mcc"]), ("labels", 1, 1, 1, 1))
        self.assertEqual(set(found["labels"]), {"bad", "good"})
        self.assertEqual(found["labels"]["good"]["support"], found["confusion"][1][1])
        text = self.ok(fovea("eval", model, "--labels", labels)).stdout.decode()
        for part in ("macro F1", "MCC", "precision", "label \\ predicted"):
            self.assertIn(part, text)
        log = [json.loads(line) for line in (model / "log.jsonl").read_text().splitlines()]
        evaluations = [line for line in log if "eval_loss" in line]
        self.assertEqual(set(evaluations[0]["labels"]["bad"]), {"precision", "recall", "f1", "support"})
        self.assertEqual(len(evaluations[0]["confusion"]), 2)
        # The run stops at the third evaluation without a better metric.
        best = [line["mcc"] for line in evaluations].index(1)
        self.assertEqual(len(evaluations), best + 4)
        self.assertLess(evaluations[-1]["step"], 200)

    def test_several_labels_and_numbers(self):
        several, numbers = self.several(), self.numbers()
        model = self.train(several, "several", "--class-weights", "good=2", "--best-by", "f1")
        found = self.evaluated(model, several)
        self.assertEqual(found["objective"], "label_sets")
        self.assertGreater(found["f1"], 0.95)
        self.assertNotIn("confusion", found)
        columns = self.lines("columns.tsv", lambda film, good, long: film + "\t" + ",".join(["good"] * good + ["long"] * long))
        self.assertEqual(self.evaluated(model, columns)["f1_micro"], found["f1_micro"])  # the model tells the kind
        self.train(columns, "columns", "--problem-type", "multi_label", steps=2)
        model = self.train(numbers, "numbers", "--best-by", "spearman")
        found = self.evaluated(model, numbers)
        self.assertEqual(found["objective"], "numbers")
        self.assertGreater(found["pearson"], 0.95)
        self.assertIn("mean error", self.ok(fovea("eval", model, "--labels", numbers)).stdout.decode())

    def test_entities_of_conll_files(self):
        lines = []
        for i in range(60):
            lines += ["-DOCSTART- -X- O", "", "see NN O", "New NN B-LOC", "York NN I-LOC", ""] if i % 3 else ["Ann NN B-PER", "left VB O", ""]
        words = self.file("words.conll", "\n".join(lines))
        model = self.train(words, "words", "--best-by", "entity_f1")
        found = self.evaluated(model, words)
        self.assertEqual((found["objective"], found["entity_f1"], set(found["labels"])), ("words", 1, {"LOC", "PER"}))
        self.assertEqual(found["labels"]["LOC"]["support"], 40)

    def test_answers_to_questions(self):
        paragraphs = [{"context": f"{city} is here" if i % 4 else "nothing is here",
                       "qas": [{"id": str(i), "question": "where", "is_impossible": i % 4 == 0,
                                "answers": [{"text": city, "answer_start": 0}] if i % 4 else []}]}
                      for i, city in enumerate(["rome", "paris", "bonn"] * 20)]
        questions = self.file("questions.json", json.dumps({"version": "v2.0", "data": [{"title": "cities", "paragraphs": paragraphs}]}))
        model = self.train(questions, "answers", "--preset", "bert-base", *ENCODER, "--tokenizer", "wordpiece:120", "--best-by", "f1", steps=80)
        found = self.evaluated(model, questions)
        self.assertEqual(found["objective"], "answers")
        self.assertGreater(found["f1"], 95)
        self.assertGreater(found["exact"], 95)
        for content, reason in (("[]", "contains no question"), ("{}", '"data" is'), ('["a"]', "data[0]")):
            self.refused(fovea("eval", model, "--labels", self.file("bad.json", f'{{"data": {content}}}')), 2, "bad.json", reason)
        paragraphs[0]["qas"][0]["answers"] = "none"
        paragraphs[0]["qas"][0]["is_impossible"] = False
        bad = self.file("bad.json", json.dumps({"data": [{"paragraphs": paragraphs}]}))
        self.refused(fovea("eval", model, "--labels", bad), 2, "bad.json.data[0].paragraphs[0].qas[0]", '"answers" is "none"')

    def test_bad_files_and_options_are_refused(self):
        def refused(content, *mentions, name="bad.jsonl", more=()):
            out = self.folder / "out"
            self.refused(fovea("train", "--labels", self.file(name, content), "--out", out, *DECODER, *SMALL, *more), 2, *mentions)
            self.assertFalse(out.exists())
        refused('{"text": "a", "labels": "x"}\n', "bad.jsonl:1", '"labels" is "x"', "expected a list")
        refused('{"text": "a", "labels": ["x"]}\n{"text": "b", "label": "x"}\n', "bad.jsonl:2", 'has "label"; expected "labels"')
        refused('{"text": "a", "label": "x"}\n{"text": "b", "label": {}}\n', "bad.jsonl:2", '"label"', "a string or a number")
        refused("a\tx\nb\t2\n", "bad.tsv:1", '"x"; expected a number', name="bad.tsv", more=["--problem-type", "regression"])
        refused("Paris B-LOC\nalone\n", "bad.conll:2", "one column", name="bad.conll")
        refused("a\tx\nb\ty\n", "--class-weights", '"z" is not a label', name="bad.tsv", more=["--class-weights", "z=2"])
        refused("a\tx\nb\ty\n", "--best-by", "pearson is not measured", name="bad.tsv", more=["--best-by", "pearson"])
        self.refused(fovea("train", self.text, "--out", self.folder / "out", "--class-weights", "balanced"), 2, "--class-weights", "--labels")
        model = self.train(self.one(), "one", steps=1)
        self.refused(fovea("eval", model, "--labels", self.several()), 2, "several.jsonl:", "expected one label")

    @unittest.skipUnless(PYTHON, "needs PEERS_PYTHON, a Python with transformers")
    def test_transformers_computes_the_same_loss(self):
        both = ENCODER + DECODER
        for preset, kinds, more in (("tiny", ("one", "several"), DECODER), ("bert-base", ("numbers",), ENCODER), ("t5-small", ("several",), both),
                                    ("bart-base", ("one", "numbers"), both)):
            for kind in kinds:
                labels = getattr(self, kind)()
                model = self.train(labels, f"{preset} {kind}", "--preset", preset, *more, steps=3)
                done = subprocess.run([PYTHON, str(ROOT / "tools/compare/compare_labels.py"), str(model), str(labels), "--fovea", FOVEA], check=False,
                                      stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=240,
                                      env={**os.environ, "HF_HUB_OFFLINE": "1"})
                self.assertEqual(done.returncode, 0, f"{preset} {kind}: " + done.stdout + done.stderr[-3000:])


if __name__ == "__main__":
    unittest.main()
