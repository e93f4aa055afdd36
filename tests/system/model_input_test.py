"""classify, eval and train read the same tokens of a text or a pair: those that transformers reads, with each setting of the tokenizer."""
import json
import math
import shutil
import unittest

from support import ROOT, FoveaTest, edit_json, fovea, tensors

MODELS = ROOT / "tests/goldens/classifiers"
GOLDENS = json.loads((ROOT / "tests/goldens/model_input.json").read_text(encoding="utf-8"))["cases"]


def log_softmax(logits):
    most = max(logits)
    total = math.log(sum(math.exp(x - most) for x in logits)) + most
    return [x - total for x in logits]


def softplus(x):
    return max(x, 0) + math.log1p(math.exp(-abs(x)))


class ModelInput(FoveaTest):
    def cases(self, *names):
        for number, case in enumerate(GOLDENS):
            if case["model"] not in names:
                continue
            folder = self.folder / f"model{number}"
            shutil.copytree(MODELS / case["model"], folder)
            edit_json(folder / "tokenizer_config.json", case["tokenizer_config"])
            edit_json(folder / "config.json", case["config"])
            with self.subTest(model=case["model"], settings=case["tokenizer_config"], config=case["config"]):
                yield folder, case

    def lines(self, name, rows):
        return self.file(name, "".join(json.dumps(row) + "\n" for row in rows))

    def rows(self, case):
        return [dict(zip(("text", "text_pair"), texts)) for texts in case["inputs"]]

    def logits(self, folder, case):
        """The logits of classify in the order of the model's labels."""
        names = list(json.loads((folder / "config.json").read_text(encoding="utf-8"))["id2label"].values())
        file = self.lines(folder.name + ".jsonl", self.rows(case))
        lines = self.ok(fovea("classify", folder, file, "--raw", "--json", "--top", len(names))).stdout.decode().splitlines()
        found = [{label["label"]: label["score"] for label in json.loads(line)["labels"]} for line in lines]
        return names, [[one[name] for name in names] for one in found]

    def loss(self, folder, rows):
        return json.loads(self.ok(fovea("eval", folder, "--labels", self.lines("labels.jsonl", rows), "--json")).stdout)["loss"]

    def test_classify_has_the_logits_of_transformers(self):
        """Token types of the class TokenizersBackend, model_max_length, truncation_side, and texts that end with the padding token."""
        for folder, case in self.cases("texts", "decoder", "encoder_decoder", "several", "regression"):
            _, found = self.logits(folder, case)
            for texts, one, wanted in zip(case["inputs"], found, case["logits"]):
                for x, y in zip(one, wanted):
                    self.assertAlmostEqual(x, y, delta=2e-6, msg=texts)

    def test_the_loss_of_eval_is_that_of_the_logits_of_classify(self):
        """eval gave types to pairs whose tokenizer has none, and kept the first tokens and the last one of a long pair."""
        for folder, case in self.cases("texts", "decoder", "encoder_decoder"):
            names, found = self.logits(folder, case)
            rows = [{**row, "label": names[i % len(names)]} for i, row in enumerate(self.rows(case))]
            wanted = -sum(log_softmax(logits)[i % len(names)] for i, logits in enumerate(found)) / len(found)
            self.assertAlmostEqual(self.loss(folder, rows), wanted, delta=2e-6)

    def test_losses_of_several_labels_and_of_numbers(self):
        for folder, case in self.cases("several"):
            names, found = self.logits(folder, case)
            rows = [{**row, "labels": names[i % 2:i % 2 + 2]} for i, row in enumerate(self.rows(case))]
            wanted = [softplus(-x if name in row["labels"] else x) for row, logits in zip(rows, found) for name, x in zip(names, logits)]
            self.assertAlmostEqual(self.loss(folder, rows), sum(wanted) / len(wanted), delta=2e-6)
        for folder, case in self.cases("regression"):
            _, found = self.logits(folder, case)
            rows = [{**row, "label": 0.5 + i} for i, row in enumerate(self.rows(case))]
            wanted = [(logits[0] - row["label"]) ** 2 for row, logits in zip(rows, found)]
            self.assertAlmostEqual(self.loss(folder, rows), sum(wanted) / len(wanted), delta=2e-5)

    def test_training_reads_what_classify_reads(self):
        """The loss before a step is that of eval, so fine-tuning too reads the end of long texts if the tokenizer says so."""
        for folder, case in self.cases("texts"):
            rows = [{**row, "label": label} for row in self.rows(case) for label in ("neutral", "entailment", "contradiction")]
            file = self.lines("train.jsonl", rows)
            out = self.folder / f"out-{folder.name}"
            self.ok(fovea("train", "--labels", file, "--validation-labels", file, "--from", folder, "--out", out, "--steps", 1, "--batch", 4,
                          "--learning-rate", 0, "--evaluate-every", 1, "--dtype", "fp32"))
            log = [json.loads(line) for line in (out / "log.jsonl").read_text(encoding="utf-8").splitlines()]
            losses = [line["eval_loss"] for line in log if "eval_loss" in line]
            self.assertAlmostEqual(losses[-1], self.loss(folder, rows), delta=2e-5)

    def test_trace_has_the_logits_of_classify(self):
        """trace ran the decoder of an encoder-decoder on its start token alone, and read the padding token at the end of a decoder's text."""
        for folder, case in self.cases("encoder_decoder", "decoder"):
            if case["tokenizer_config"]:
                continue
            for texts, wanted in zip(case["inputs"], case["logits"]):
                if len(texts) > 1 or len(texts[0]) > 60:  # trace reads single texts, and does not truncate them
                    continue
                out = self.folder / "trace.safetensors"
                self.ok(fovea("trace", folder, "--text", texts[0], "--out", out))
                for x, y in zip(tensors(out)["logits"][1], wanted):
                    self.assertAlmostEqual(x, y, delta=2e-6, msg=texts)

    def test_entities_of_classify_are_the_labels_that_eval_counts(self):
        """classify joined all tokens of a word, of which training gives a label to the first only."""
        words = "foxes see the birds night calm eyes of suns".split()
        folder = MODELS / "words"
        entities = json.loads(self.ok(fovea("classify", folder, " ".join(words), "--json")).stdout)["entities"]
        names = list(json.loads((folder / "config.json").read_text(encoding="utf-8"))["id2label"].values())
        labels, begin = [], 0
        for word in words:
            one = [entity for entity in entities if entity["start"] <= begin < entity["end"]]
            labels.append("O" if not one else ("B-" if one[0]["start"] == begin else "I-") + one[0]["entity_group"])
            begin += len(word) + 1
        self.assertLessEqual(set(labels), set(names))
        self.assertGreater(len(entities), 1)
        file = self.lines("words.jsonl", [{"tokens": words, "labels": labels}])
        found = json.loads(self.ok(fovea("eval", folder, "--labels", file, "--json")).stdout)
        self.assertEqual(found["entity_f1"], 1.0)


if __name__ == "__main__":
    unittest.main()
