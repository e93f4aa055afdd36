"""fovea classify: labels, pairs, entities, answers, masks, candidate labels, formats and errors."""
import json
import unittest

from serving import ServeTest
from support import ROOT, FoveaTest, fovea

MODELS = ROOT / "tests/goldens/classifiers"


def expected(name):
    return json.loads((MODELS / name / "expected.json").read_text(encoding="utf-8"))


class Classify(FoveaTest):
    def classify(self, name, *arguments, text=b""):
        return self.ok(fovea("classify", MODELS / name, *arguments, input=text)).stdout.decode()

    def objects(self, *arguments, **how):
        return [json.loads(line) for line in self.classify(*arguments, "--json", **how).splitlines()]

    def same_labels(self, found, wanted):
        self.assertEqual([label["label"] for label in found], [label["label"] for label in wanted])
        for one, other in zip(found, wanted):
            self.assertAlmostEqual(one["score"], other["score"], delta=1e-5)

    def lines(self, name):
        return "".join(text + "\n" for text in expected(name)["texts"]).encode()

    def test_labels_of_lines_and_arguments(self):
        wanted = expected("texts")
        found = self.objects("texts", "--top", 3, text=self.lines("texts"))
        self.assertEqual([one["index"] for one in found], [0, 1, 2, 3])
        for one, labels in zip(found, wanted["labels"]):
            self.same_labels(one["labels"], labels)
        plain = self.classify("texts", text=self.lines("texts")).splitlines()
        self.assertEqual([line.split("\t")[0] for line in plain], [labels[0]["label"] for labels in wanted["labels"]])
        self.same_labels(self.objects("texts", wanted["texts"][0])[0]["labels"], wanted["labels"][0][:1])

    def test_pairs_of_tables_and_json_lines(self):
        wanted = expected("texts")
        first, second = wanted["texts"][:2]
        table, objects = self.folder / "pairs.tsv", self.folder / "pairs.jsonl"
        table.write_text(f"{first}\t{second}\n", encoding="utf-8")
        objects.write_text(json.dumps({"text": first, "text_pair": second}) + "\n", encoding="utf-8")
        for path in (table, objects):
            self.same_labels(self.objects("texts", path, "--top", 3)[0]["labels"], wanted["pair"])
        found = self.objects("texts", "--top", 3, "--input-format", "pairs", text=table.read_bytes())
        self.same_labels(found[0]["labels"], wanted["pair"])

    def test_several_labels_and_numbers(self):
        wanted = expected("several")
        found = self.objects("several", text=self.lines("several"))
        for one, labels in zip(found, wanted["labels"]):
            self.same_labels(one["labels"], [label for label in labels if label["score"] >= 0.5])
        number = self.classify("regression", expected("regression")["texts"][0])
        self.assertAlmostEqual(float(number.split("\t")[1]), expected("regression")["labels"][0][0]["score"], delta=1e-5)

    def test_candidate_labels(self):
        wanted = expected("texts")
        candidates = ["--labels", ", ".join(wanted["candidates"]), "--top", 3]
        self.same_labels(self.objects("texts", wanted["texts"][0], *candidates)[0]["labels"], wanted["one"])
        self.same_labels(self.objects("texts", wanted["texts"][0], *candidates, "--multi-label")[0]["labels"], wanted["several"])
        self.refused(fovea("classify", MODELS / "several", "x", "--labels", "a,b"), 2, "--labels", "entail")
        self.refused(fovea("classify", MODELS / "texts", "x", "--labels", "a,,b"), 2, "--labels")
        self.refused(fovea("classify", MODELS / "texts", "x", "--labels", "a", "--hypothesis", "none"), 2, "--hypothesis", "{}")

    def test_entities(self):
        for name in ("words_of_t5", "words"):
            wanted = expected(name)
            for joining in ("none", "simple", "first", "average", "max"):
                found = self.objects(name, "--joining", joining, text=self.lines(name))
                for one, entities in zip(found, wanted[joining]):
                    self.assertEqual([(e["entity_group"], e["start"], e["end"]) for e in one["entities"]],
                                     [(e["label"], e["start"], e["end"]) for e in entities])
                    for found_one, entity in zip(one["entities"], entities):
                        self.assertAlmostEqual(found_one["score"], entity["score"], delta=1e-5)
        number, begin, end, label, score, text = self.classify("words", text=self.lines("words")).splitlines()[0].split("\t")
        self.assertEqual(text, wanted["texts"][int(number) - 1][int(begin):int(end)])

    def test_answers(self):
        wanted = expected("answers")
        for i, context in enumerate(wanted["contexts"]):
            found = self.objects("answers", wanted["question"], "--context", context, "--top", 3, "--null-answer")[0]["answers"]
            self.assertEqual([(a["start"], a["end"], a["answer"]) for a in found],
                             [(a["start"], a["end"], a["answer"]) for a in wanted["three"][i]])
        path = self.folder / "context.txt"
        path.write_text(wanted["contexts"][1], encoding="utf-8")
        answer = self.classify("answers", wanted["question"], "--context", path).split("\t")[4].strip()
        self.assertEqual(answer, wanted["best"][1][0]["answer"])
        line = json.dumps({"question": wanted["question"], "context": wanted["contexts"][0]}).encode()
        found = self.objects("answers", "--input-format", "json", text=line)[0]["answers"]
        self.assertEqual(found[0]["answer"], wanted["best"][0][0]["answer"])
        self.refused(fovea("classify", MODELS / "answers", "who?"), 2, "arguments: line 1", "--context")

    def test_masks(self):
        wanted = expected("masks")
        found = self.objects("masks", "--top", 3, *wanted["texts"])
        for one, masks in zip(found, wanted["masks"]):
            self.assertEqual([[c["sequence"] for c in mask] for mask in one["masks"]], [[c["sequence"] for c in mask] for mask in masks])
        self.assertEqual(len(self.classify("masks", "--top", 1, "[MASK] and [MASK]").splitlines()), 2, "brackets are not a list")
        self.refused(fovea("classify", MODELS / "masks", "no mask here"), 2, "line 1", "[MASK]")

    def test_output_files_are_resumable_and_equal(self):
        lines, out = self.folder / "lines.txt", self.folder / "labels.jsonl"
        lines.write_bytes(self.lines("texts") * 300)
        self.ok(fovea("classify", MODELS / "texts", lines, "--json", "--out", out))
        self.assertEqual(out.read_text(), self.classify("texts", lines, "--json"))
        self.assertEqual(out.read_text(), self.classify("texts", lines, "--json", "--threads", 1))
        self.assertEqual(len(out.read_text().splitlines()), 1200)

    def test_bad_input_gives_one_line(self):
        bad = self.folder / "bad.jsonl"
        for line, texts in ((b"{", ["bad.jsonl: line 2"]), (b"[]", ["line 2", "object"]), (b'{"x": 1}', ["line 2", "text"]),
                            (b'{"text": 1}', ["line 2", "text"]), (b"", ["line 2"])):
            bad.write_bytes(b'{"text": "the fox"}\n' + line + b"\n")
            self.refused(fovea("classify", MODELS / "texts", bad), 2, *texts)
        table = self.folder / "bad.tsv"
        table.write_bytes(b"a\tb\nno tab\n")
        self.refused(fovea("classify", MODELS / "texts", table), 2, "bad.tsv: line 2", "tab")
        table.write_bytes(b"a\tb\n")
        self.refused(fovea("classify", MODELS / "words", table), 2, "line 1", "two texts")
        self.refused(fovea("classify", MODELS / "texts", "none.txt"), 2, "none.txt", "no such file")
        self.refused(fovea("classify", MODELS / "texts", "x", "--context", "y"), 2, "--context")
        self.refused(fovea("classify", MODELS / "decoder", input=b"a\n\n"), 2, "line 2", "no tokens")
        self.assertEqual(self.classify("texts", text=b""), "")
        self.assertEqual(len(self.classify("texts", text=b"\xff\xfe broken \x80\n\n").splitlines()), 2)
        json.loads(self.classify("words", "--json", text=b"\xff Anna \x80\n"))

    def test_gguf_files_label_texts(self):
        for name, more in (("texts", ["--top", 3]), ("several", []), ("regression", [])):
            path = self.folder / f"{name}.gguf"
            self.ok(fovea("convert", MODELS / name, path))
            for text in (self.lines(name), b"the fox\ta bird\n"):
                how = ["--input-format", "pairs"] if b"\t" in text else []
                run = self.ok(fovea("classify", path, *more, *how, "--json", input=text))
                self.assertEqual(run.stdout.decode(), self.classify(name, *more, *how, "--json", text=text))
        back = self.folder / "back"
        self.ok(fovea("convert", self.folder / "texts.gguf", back))
        wanted = expected("texts")
        self.same_labels(json.loads(self.ok(fovea("classify", back, wanted["texts"][0], "--top", 3, "--json")).stdout)["labels"], wanted["labels"][0])
        explained = self.ok(fovea("classify", self.folder / "texts.gguf", "the fox", "--explain", "--json")).stdout
        self.assertEqual(explained.decode(), self.classify("texts", "the fox", "--explain", "--json"))
        small = self.folder / "q8_0.gguf"
        self.ok(fovea("convert", MODELS / "texts", small, "--dtype", "q8_0"))
        self.ok(fovea("classify", small, "the fox"))
        for name, reason in (("words", "does not label texts"), ("answers", "does not label texts"), ("masks", "does not label texts"),
                             ("decoder", "this classifier"), ("encoder_decoder", "an encoder and a decoder")):
            self.refused(fovea("convert", MODELS / name, self.folder / "no.gguf"), 2, reason)

    def test_models_without_a_head_name_the_right_verb(self):
        self.refused(fovea("classify", ROOT / "tests/goldens/gpt2_bf16", "x"), 2, "no classification head", "fovea generate")
        self.refused(fovea("classify", ROOT / "tests/goldens/sentence_model", "x"), 2, "no classification head", "fovea embed")
        self.refused(fovea("classify"), 2, "MODEL")

    def test_precisions(self):
        full = float(self.classify("texts", "the fox").split("\t")[1])
        for dtype in ("bf16", "int8"):
            self.assertAlmostEqual(float(self.classify("texts", "the fox", "--dtype", dtype).split("\t")[1]), full, delta=0.05)


class ServedClassifier(ServeTest):
    def test_routes_of_a_classifier_beside_a_language_model(self):
        wanted = expected("texts")
        self.serve(MODELS / "texts")
        status, _, body = self.ask("POST", "/predict", {"inputs": wanted["texts"][0]})
        self.assertEqual((status, [label["label"] for label in body]), (200, [label["label"] for label in wanted["labels"][0]]))
        for path in ("/classify", "/v1/classify"):
            status, _, body = self.ask("POST", path, {"input": wanted["texts"]})
            self.assertEqual((status, [one["label"] for one in body["data"]]), (200, [labels[0]["label"] for labels in wanted["labels"]]))
        status, _, body = self.ask("POST", "/v1/classify", {"text": "a"})
        self.assertEqual((status, body["error"]["param"]), (400, "input"))
        status, _, body = self.ask("POST", "/predict", "[1")
        self.assertEqual((status, body["error_type"]), (422, "Validation"))
        self.assertEqual(self.ask("GET", "/info")[2]["model_type"], {"generation": {"chat": True}})


if __name__ == "__main__":
    unittest.main()
