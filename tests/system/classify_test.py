"""fovea classify: labels, pairs, entities, answers, masks, candidate labels, formats and errors."""
import json
import math
import os
import struct
import subprocess
import unittest

from serving import ServeTest
from support import FOVEA, ROOT, FoveaTest, fovea

PYTHON = os.environ.get("PEERS_PYTHON")
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
        self.refused(fovea("classify", MODELS / "texts", "x", "--labels", "fox " * 30), 2, "--labels: the hypothesis of", "tokens; expected at most 14")
        self.ok(fovea("classify", MODELS / "texts", "the fox " * 99, "--labels", "fox,bird", "--hypothesis", "{}"))

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
        for blank in ("", " \n"):
            self.refused(fovea("classify", MODELS / "answers", "who?", "--context", blank), 2, "--context: has no text")
        self.refused(fovea("classify", MODELS / "answers", "who?", "--context", "the fox", "--window", 3), 2, "--window: 3 tokens; expected at least 5")
        self.refused(fovea("classify", MODELS / "answers", "fox " * 99, "--context", "the fox"), 2, "question has 99 tokens; expected at most 28")
        self.refused(fovea("classify", MODELS / "answers", "", "--context", "the fox"), 2, "the question has no tokens")
        self.ok(fovea("classify", MODELS / "answers", "who?", "--context", "the fox sees Anna. " * 200, "--overlap", 1000))

    def test_masks(self):
        wanted = expected("masks")
        found = self.objects("masks", "--top", 3, *wanted["texts"])
        for one, masks in zip(found, wanted["masks"]):
            self.assertEqual([[c["sequence"] for c in mask] for mask in one["masks"]], [[c["sequence"] for c in mask] for mask in masks])
        self.assertEqual(len(self.classify("masks", "--top", 1, "[MASK] and [MASK]").splitlines()), 2, "brackets are not a list")
        late = "[MASK] " + "the fox " * 100 + "[MASK]"
        for text in (late, "the fox " * 100 + "[MASK]"):
            self.refused(fovea("classify", MODELS / "masks", text), 2, "line 1: has a mask token outside the 30 tokens that are kept", "expected all of them")
        self.assertEqual(len(self.classify("masks", "--top", 1, late.removesuffix("[MASK]")).splitlines()), 1)
        self.assertEqual(self.classify("masks", "--top", 1, "the[MASK]fox").split("\t")[4].split()[::2], ["the", "fox"])
        for pair in (b"the fox\tthe [MASK]\n", b"the [MASK]\tthe fox\n"):
            self.refused(fovea("classify", MODELS / "masks", "--input-format", "pairs", input=pair), 2, "line 1: has two texts; expected one")
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
        long = self.ok(fovea("classify", MODELS / "texts", "the fox " * 99))
        self.assertIn(b"warning: 1 line truncated to 32 tokens, the first at arguments: line 1", long.stderr)
        self.refused(fovea("classify", MODELS / "texts", "the fox " * 99, "--no-truncate"), 2, "line 1: has 200 tokens; expected at most 32")
        self.assertEqual(self.classify("texts", text=b""), "")
        self.refused(fovea("classify", MODELS / "texts", input=b"\n broken \x80\n"), 2, "standard input:2:9: is not UTF-8")

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
        config = json.loads((back / "config.json").read_text(encoding="utf-8"))
        self.assertEqual((config["architectures"], config["pad_token_id"]), (["BertForSequenceClassification"], 0))
        for name, reason in (("words", "a head for tokens"), ("answers", "a head for tokens"), ("decoder", "this classifier"),
                             ("encoder_decoder", "an encoder and a decoder")):
            self.refused(fovea("convert", MODELS / name, self.folder / "no.gguf"), 2, reason)

    @unittest.skipUnless(PYTHON, "needs PEERS_PYTHON, a Python with transformers and peft")
    def test_gguf_files_with_adapters_and_their_directories_equal_transformers(self):
        done = subprocess.run([PYTHON, str(ROOT / "tools/compare/compare_gguf_classifiers.py"), "--fovea", FOVEA], check=False, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, timeout=240, env={**os.environ, "HF_HUB_OFFLINE": "1"})
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr[-3000:])

    def adapter(self, prefix, width):
        """Returns an adapter of PEFT with a head of its own, whose tensors have the names of BERT or of RoBERTa."""
        out, heads = self.folder / f"adapter {prefix}", {"bert": ("bert.pooler.dense", "classifier"), "roberta": ("classifier.dense", "classifier.out_proj")}
        query = f"{prefix}.encoder.layer.0.attention.self.query"
        shapes = {f"{query}.lora_A.weight": [1, width], f"{query}.lora_B.weight": [width, 1]}
        for name, rows in zip(heads[prefix], (width, 3)):
            shapes |= {f"{name}.weight": [rows, width], f"{name}.bias": [rows]}
        header, data = {}, b""
        for number, (name, shape) in enumerate(sorted(shapes.items(), key=lambda one: len(one[1]) * 100 + one[1][-1])):
            size = math.prod(shape)
            values = struct.pack(f"<{size}f", *(((i * 7 + number) % 5 - 2) / 4 for i in range(size)))
            header[f"base_model.model.{name}"] = {"dtype": "F32", "shape": shape, "data_offsets": [len(data), len(data) + len(values)]}
            data += values
        text = json.dumps(header).encode()
        out.mkdir()
        (out / "adapter_model.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + data)
        config = {"peft_type": "LORA", "task_type": "SEQ_CLS", "r": 1, "lora_alpha": 4, "target_modules": ["query"], "base_model_name_or_path": "",
                  "modules_to_save": ["pooler.dense", "classifier"]}
        (out / "adapter_config.json").write_text(json.dumps(config))
        return out

    def test_adapters_of_bert_and_roberta_fit_a_gguf_file(self):
        model, file = MODELS / "texts", self.folder / "texts.gguf"
        self.ok(fovea("convert", model, file))
        width = json.loads((model / "config.json").read_text(encoding="utf-8"))["hidden_size"]
        bert, roberta = self.adapter("bert", width), self.adapter("roberta", width)
        found = {self.ok(fovea("classify", where, "the fox", "--adapter", adapter, "--json")).stdout.decode()
                 for adapter, where in ((bert, model), (bert, file), (roberta, file))}
        self.assertEqual(len(found), 1)
        self.assertNotEqual(found, {self.classify("texts", "the fox", "--json")})
        self.refused(fovea("classify", MODELS / "decoder", "the fox", "--adapter", bert), 2, "adapter_model.safetensors")

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
        for path, wrong, named, needed in (
                ("/classify", {}, "input", "a text, or an array of texts"), ("/classify", {"input": [["a", "b"]]}, "input", "a string or an array of strings"),
                ("/classify", {"input": []}, "input", "at least one text"), ("/v1/classify", {"inputs": "a"}, "input", "a text, or an array of texts"),
                ("/tokenize", {}, "content", "content, prompt or inputs"), ("/tokenize", {"input": "a"}, "input", "inputs"),
                ("/tokenize", {"inputs": ["a", 1]}, "inputs", "a string or an array of strings"), ("/score", {}, "text_1", "a text"),
                ("/v1/rerank", {"query": "a"}, "documents", "texts to score"), ("/v2/rerank", {"query": "a", "documents": [1]}, "documents", "an array of texts")):
            status, _, body = self.ask("POST", path, wrong)
            self.assertEqual((status, body["error"]["param"]), (400, named), path)
            self.assertIn("expected " + needed, body["error"]["message"])
        for path, wrong, needed in (
                ("/predict", {}, "inputs: is missing; expected a text, a pair of texts"), ("/predict", {"inputs": [["a", "b", "c"]]}, "inputs: expected a text, a pair"),
                ("/predict", {"inputs": ["a", 5]}, "inputs: expected a text, a pair"), ("/predict", {"inputs": "the fox " * 99, "truncate": False}, "expected at most 32"),
                ("/rerank", {}, "query: is missing; expected the query"), ("/rerank", {"query": "a", "texts": "b"}, "texts: expected an array of strings"),
                ("/similarity", {"inputs": "a"}, "inputs: expected an object"), ("/similarity", {}, "inputs: is missing; expected the texts to compare")):
            status, _, body = self.ask("POST", path, wrong)
            self.assertEqual((status, body["error_type"]), (422, "Validation"), path)
            self.assertIn(needed, body["error"])
        self.assertEqual(self.ask("POST", "/tokenize", {"content": ""})[2]["tokens"], [])
        self.assertEqual(self.ask("GET", "/info")[2]["model_type"], {"generation": {"chat": True}})


class ServedTasks(ServeTest):
    """Parts of texts and candidate labels over HTTP equal the pipelines of transformers, in the format of Hugging Face's services."""

    def result(self, path, inputs, **parameters):
        status, _, body = self.ask("POST", path, {"inputs": inputs, "parameters": parameters})
        self.assertEqual(status, 200, body)
        return body

    def refused(self, path, body, status, *parts):
        got, _, answer = self.ask("POST", path, body)
        self.assertEqual(got, status, answer)
        for part in parts:
            self.assertIn(part, answer["error"])

    def assert_near(self, body, wanted, names=()):
        """`names`: keys of the response by those of the golden file."""
        self.assertEqual(len(body), len(wanted))
        for got, each in zip(body, wanted):
            for key, value in each.items():
                self.assertAlmostEqual(got[dict(names).get(key, key)], value, delta=1e-5) if key == "score" else \
                    self.assertEqual(got[dict(names).get(key, key)], value)

    def test_served_entities(self):
        wanted = expected("words")
        self.serve(MODELS / "words")
        self.assertIn("entities", [model["meta"]["use"] for model in self.ask("GET", "/v1/models")[2]["data"]])
        texts = wanted["texts"]
        for path in ("/", "/token-classification"):
            for text, entities in zip(texts, wanted["simple"]):
                self.assert_near(self.result(path, text), entities, {"label": "entity_group"}.items())
        for strategy in ("first", "average", "max"):
            for got, entities in zip(self.result("/token-classification", texts, aggregation_strategy=strategy), wanted[strategy]):
                self.assert_near(got, entities, {"label": "entity_group"}.items())
        self.assert_near(self.result("/", texts[0], aggregation_strategy="none", ignore_labels=["O"], stride=None), wanted["none"][0], {"label": "entity"}.items())
        self.assertEqual(self.result("/", "night")[0]["word"], "night")
        self.refused("/token-classification", {}, 422, "inputs: is missing; expected a text")
        self.refused("/", {"inputs": [1]}, 422, "inputs: expected a string or an array of strings")
        self.refused("/", {"inputs": "a", "parameters": {"aggregation_strategy": "best"}}, 422, "parameters.aggregation_strategy: expected none, simple")
        self.refused("/", {"inputs": "a", "parameters": {"ignore_labels": []}}, 422, 'parameters.ignore_labels: expected ["O"]')
        self.refused("/", {"inputs": "a", "parameters": {"top_k": 1}}, 422, "parameters.top_k: expected aggregation_strategy, stride")
        self.refused("/", {"inputs": "a", "parameters": [1]}, 422, "parameters: expected an object")
        self.refused("/", {"inputs": "a " * (1 << 19)}, 422, "with shorter texts")
        for path in ("/fill-mask", "/question-answering", "/predict", "/v1/embeddings", "/zero-shot-classification"):
            body = {"model": "words", "inputs": "a [MASK]", "input": "a", "parameters": {"candidate_labels": ["a"]} if "zero" in path else {}}
            if path == "/question-answering":
                body["inputs"] = {"question": "a", "context": "b"}
            status, _, answer = self.ask("POST", path, body)
            self.assertGreaterEqual(status, 400, path)
            self.assertIn("model: words: ", str(answer), path)

    def test_served_answers(self):
        wanted = expected("answers")
        self.serve(MODELS / "answers")
        questions = [{"question": wanted["question"], "context": context} for context in wanted["contexts"]]
        for path in ("/", "/question-answering"):
            for question, best in zip(questions, wanted["best"]):
                self.assert_near([self.result(path, question)], best)
            for got, best in zip(self.result(path, questions), wanted["best"]):
                self.assert_near([got], best)
        self.assert_near(self.result("/", questions[0], top_k=3, align_to_words=True), wanted["three"][0])
        self.assertIn("answer", self.result("/", questions[0], handle_impossible_answer=True, max_answer_len=3, doc_stride=4, max_seq_len=24))
        for inputs in ("a", {"question": "a"}, {"question": 1, "context": "b"}, [questions[0], "b"]):
            self.refused("/", {"inputs": inputs}, 422, 'inputs: expected {"question", "context"}')
        self.refused("/", {"inputs": []}, 422, "inputs: expected 1 to 2048 questions")
        self.refused("/", {"inputs": {"question": "a", "context": ""}}, 422, "inputs")
        self.refused("/", {"inputs": questions[0], "parameters": {"max_question_len": 3}}, 422, "parameters.max_question_len: expected top_k, doc_stride")
        self.refused("/", {"inputs": questions[0], "parameters": {"top_k": 0}}, 422, "parameters.top_k")

    def test_served_masked_words_and_vectors(self):
        wanted = expected("masks")
        self.serve(MODELS / "masks")
        top = len(wanted["masks"][0][0])
        one, two = wanted["texts"]
        for path in ("/", "/fill-mask"):
            self.assert_near(self.result(path, one, top_k=top), wanted["masks"][0][0])
            self.assertEqual(len(self.result(path, one)), 5)
        both = self.result("/", [one, two], top_k=top)
        self.assert_near(both[0], wanted["masks"][0][0])
        for got, candidates in zip(both[1], wanted["masks"][1]):
            # The pipeline of transformers keeps special tokens in the sequence if a text has several masks.
            self.assert_near(got, [{key: value for key, value in each.items() if key != "sequence"} for each in candidates])
        self.refused("/", {"inputs": "no mask"}, 422, "inputs", "mask")
        self.refused("/", {"inputs": one, "parameters": {"targets": ["fox"]}}, 422, "parameters.targets: expected top_k")
        self.refused("/", {"inputs": one, "parameters": {"top_k": 1001}}, 422, "parameters.top_k")
        self.refused("/", {"inputs": ["[MASK] " * 9999] * 9, "parameters": {"top_k": 1000}}, 422, "with fewer masks or a smaller top_k")
        status, _, vectors = self.ask("POST", "/v1/embeddings", {"input": "the fox"})
        self.assertEqual((status, len(vectors["data"])), (200, 1))

    def test_served_candidate_labels(self):
        wanted = expected("texts")
        self.serve(MODELS / "texts")
        text, labels = wanted["texts"][0], wanted["candidates"]
        for path in ("/", "/zero-shot-classification"):
            self.assert_near(self.result(path, text, candidate_labels=labels), wanted["one"])
            self.assert_near(self.result(path, text, candidate_labels=", ".join(labels), multi_label=True), wanted["several"])
            self.assert_near(self.result(path, [text], candidate_labels=labels)[0], wanted["one"])
        self.assertEqual(len(self.result("/", text)), len(wanted["labels"][0]))  # without candidates: /predict
        self.refused("/zero-shot-classification", {"inputs": text}, 422, "parameters: is missing; expected an object with candidate_labels")
        self.refused("/", {"inputs": text, "parameters": {"candidate_labels": ["a", ""]}}, 400, "parameters.candidate_labels: expected at least one character")
        self.refused("/", {"inputs": text, "parameters": {"candidate_labels": ["a"], "hypothesis_template": "none"}}, 422, "{}")


if __name__ == "__main__":
    unittest.main()
