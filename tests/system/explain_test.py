"""Explanations: classify --explain, embed --explain, trace --explain, and the page, which has the same numbers."""
import json
import subprocess
import urllib.error
import urllib.request

from support import FOVEA, ROOT, FoveaTest, fovea

GOLDENS = ROOT / "tests/goldens"
CLASSIFIER = GOLDENS / "classifiers/texts"
TEXT = "the fox sees Anna Lee in Paris."


class Explain(FoveaTest):
    def printed(self, *arguments, **how):
        return self.ok(fovea(*arguments, **how)).stdout.decode()

    def golden(self, name):
        found = json.loads((GOLDENS / "explanations.json").read_text(encoding="utf-8"))
        return next(golden for golden in found if golden["name"] == name)

    def test_classify_prints_scores_and_deletion_tests(self):
        text = self.printed("classify", CLASSIFIER, TEXT, "--explain", "--target", "neutral", "--integration-steps", 16, "--removed-share", 0.3)
        lines = text.splitlines()
        golden = self.golden("texts")
        self.assertTrue(lines[1].startswith("logit neutral: "), lines[1])
        self.assertAlmostEqual(float(lines[1].split()[-1]), golden["value"], delta=2e-5)
        for method in ("gradient x input", "integrated gradients", "attention rollout"):
            self.assertIn(method, lines[2])
        self.assertTrue(lines[3].startswith("[CLS]"), lines[3])
        self.assertIn("*", lines[3])
        fox = next(line for line in lines if line.startswith("fox"))
        scores = [float(word) for word in fox.split() if word[-1].isdigit()]
        self.assertEqual(len(scores), 3, fox)
        for score, key in zip(scores, ("gradient_input", "integrated_gradients", "rollout")):
            self.assertAlmostEqual(score, golden[key][2], delta=2e-5)
        test = lines.index("deletion test: change of the logit without 3 of 10 tokens")
        for line, deletion in zip(lines[test + 1:], golden["deletions"]):
            change = next(float(word) for word in line.split() if word[-1].isdigit())
            self.assertAlmostEqual(change, deletion["change"], delta=2e-5)
        self.assertIn("mean of 20 choices", lines[test + 4])
        self.assertIn("baseline padding", lines[-1])
        self.assertIn("completeness error", lines[-1])

    def test_json_of_lines_and_one_method(self):
        lines = f"{TEXT}\nnight and day\n"
        found = [json.loads(line) for line in
                 self.printed("classify", CLASSIFIER, "--explain", "rollout", "--json", "--top", 3, input=lines.encode()).splitlines()]
        self.assertEqual([one["index"] for one in found], [0, 1])
        for one in found:
            explanation = one["explanation"]
            self.assertEqual(explanation["target"], one["labels"][0]["label"])
            self.assertEqual([(answer["name"], answer["score"]) for answer in explanation["outputs"]],
                             [(label["label"], label["score"]) for label in one["labels"]])
            self.assertEqual([attribution["method"] for attribution in explanation["attributions"]], ["rollout"])
            self.assertEqual(len(explanation["tokens"]), len(explanation["attributions"][0]["scores"]))
            self.assertAlmostEqual(sum(explanation["attributions"][0]["scores"]), 1, places=5)
        for value, shown in zip(found[0]["explanation"]["attributions"][0]["scores"], self.golden("texts")["rollout"]):
            self.assertAlmostEqual(value, shown, places=5)

    def test_numbers_do_not_depend_on_threads(self):
        runs = [self.printed("classify", CLASSIFIER, TEXT, "--explain", "--json", "--threads", threads) for threads in (1, 2)]
        self.assertEqual(*runs)

    def test_masks_entities_and_answers_are_explained(self):
        options = ["--explain", "--integration-steps", 16, "--removed-share", 0.3]
        cases = (("masks", "masks", "mask 1", ["--top", 2]), ("words", "entities", "entity 1", ["--joining", "simple"]), ("answers", "answers", "span", []))
        for name, key, golden, more in cases:
            model, golden = GOLDENS / "classifiers" / name, self.golden(golden)
            context = ["--context", golden["pair"]] if "pair" in golden else []
            found = json.loads(self.printed("classify", model, golden["text"], *context, *options, *more, "--json"))
            self.assertEqual(len(found[key]), len(found["explanations"]), name)
            explanation = found["explanations"][golden["result"]]
            self.assertEqual(explanation["target"], golden["found"])
            self.assertAlmostEqual(explanation["value"], golden["value"], delta=1e-4)
            self.assertTrue(explanation["positions"], name)
            for attribution, method in zip(explanation["attributions"], ("gradient_input", "integrated_gradients", "rollout")):
                for value, wanted in zip(attribution["scores"], golden[method]):
                    self.assertAlmostEqual(value, wanted, delta=1e-4)
                self.assertFalse(set(attribution["deletion"]["removed"]) & set(explanation["positions"]), name)
            text = self.printed("classify", model, golden["text"], *context, *options, *more)
            self.assertIn("= what the answer is about", text)
            self.assertEqual(text.count("deletion test: "), len(found[key]), name)
            self.assertIn(f" {golden['found']}: {str(golden['value'])[:6]}", text)
        one = json.loads(self.printed("classify", GOLDENS / "classifiers/masks", "the [MASK] sees", "--explain", "rollout", "--target", "fox", "--json"))
        self.assertEqual(one["explanations"][0]["target"], "fox")
        self.assertLess(one["explanations"][0]["value"], 0)

    def test_the_empty_answer_is_explained(self):
        found = json.loads(self.printed("classify", GOLDENS / "classifiers/answers", "Who sees it?", "--context", TEXT, "--null-answer", "--top", 30,
                                        "--explain", "rollout", "--json"))
        empty = next(i for i, answer in enumerate(found["answers"]) if answer["answer"] == "")
        self.assertEqual((found["explanations"][empty]["target"], found["explanations"][empty]["positions"]), ("", [0]))

    def test_embed_explains_similarities(self):
        golden = self.golden("sentence_model")
        model = GOLDENS / "sentence_model"
        options = ["--explain", golden["other"], "--integration-steps", 16, "--removed-share", 0.3]
        lines = f"{golden['text']}\nnight\n".encode()
        found = [json.loads(line) for line in self.printed("embed", model, *options, "--json", input=lines).splitlines()]
        self.assertEqual(len(found), 2)
        explanation = found[0]["explanation"]
        self.assertEqual(explanation["value_name"], "cosine")
        self.assertAlmostEqual(explanation["value"], golden["value"], places=5)
        for value, wanted in zip(explanation["attributions"][1]["scores"], golden["integrated_gradients"]):
            self.assertAlmostEqual(value, wanted, places=6)
        self.assertIsNone(found[1]["explanation"]["attributions"][0]["deletion"])
        plain = self.printed("embed", model, *options, input=lines)
        self.assertIn(f"cosine {golden['other']}: {str(golden['value'])[:6]}", plain)
        self.assertIn("fewer than two tokens can be removed", plain)

    def test_trace_explains_next_tokens_and_labels(self):
        golden = self.golden("gpt2_relu")
        ids = ",".join(map(str, golden["ids"]))
        found = json.loads(self.printed("trace", GOLDENS / "gpt2_relu", "--ids", ids, "--explain", "--target", "4", "--json",
                                        "--integration-steps", 16, "--baseline", "zero"))
        self.assertEqual(found["value_name"], "log-probability")
        self.assertAlmostEqual(found["value"], golden["value"], places=4)
        for value, wanted in zip(found["attributions"][0]["scores"], golden["gradient_input"]):
            self.assertAlmostEqual(value, wanted, places=4)
        self.assertEqual(len(found["outputs"]), 10)
        likeliest = json.loads(self.printed("trace", GOLDENS / "gpt2_relu", "--ids", ids, "--explain", "rollout", "--json"))
        self.assertEqual(likeliest["target"], likeliest["outputs"][0]["name"])
        label = json.loads(self.printed("trace", CLASSIFIER, "--text", TEXT, "--explain", "--json"))
        self.assertEqual(label, json.loads(self.printed("classify", CLASSIFIER, TEXT, "--explain", "--json"))["explanation"])

    def test_trace_explains_entities_and_masks(self):
        for name, text in (("words", TEXT), ("masks", "the [MASK] sees a [MASK] in Paris.")):
            model = GOLDENS / "classifiers" / name
            wanted = json.loads(self.printed("classify", model, text, "--explain", "--json"))["explanations"]
            found = [json.loads(line) for line in self.printed("trace", model, "--text", text, "--explain", "--json").splitlines()]
            self.assertEqual(found, wanted)
            self.assertGreater(len(found), 1)
            self.assertEqual(self.printed("trace", model, "--text", text, "--explain").count("deletion test: "), len(found))
        none = self.ok(fovea("trace", GOLDENS / "classifiers/words", "--text", " ", "--explain"))
        self.assertEqual((none.stdout, none.stderr), (b"", b"No entities in the text.\n"))

    def inspected(self, model):
        """Starts the inspector of a model and returns a function that posts to one of its routes."""
        server = subprocess.Popen([FOVEA, "inspect", str(model), "--no-browser"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.addCleanup(server.stdout.close)
        self.addCleanup(server.wait)
        self.addCleanup(server.terminate)
        address = server.stdout.readline().decode().strip()

        def post(body, route="explain"):
            try:
                with urllib.request.urlopen(urllib.request.Request(f"{address}api/{route}", json.dumps(body).encode())) as answer:
                    return json.load(answer)
            except urllib.error.HTTPError as error:
                return json.load(error)
        return post

    def test_the_page_has_the_same_numbers(self):
        for name in ("texts", "encoder_decoder"):
            model = GOLDENS / "classifiers" / name
            post = self.inspected(model)
            self.assertEqual(len(post({"text": TEXT}, "run")["tokens"]), 12)
            for options in ({}, {"target": "neutral", "method": "integrated_gradients", "integration_steps": 7, "random_choices": 3, "seed": 5}):
                arguments = [part for key, value in options.items() if key != "method" for part in (f"--{key.replace('_', '-')}", value)]
                wanted = json.loads(self.printed("classify", model, TEXT, "--json", *arguments, f"--explain={options.get('method', 'all')}"))
                shown = post({"model": "0", "text": TEXT, **options})
                self.assertEqual(shown.pop("results"), [{"target": wanted["explanation"]["target"], "text": ""}])
                self.assertEqual(shown, wanted["explanation"])
        self.assertIn("removed_share: expected a number", post({"text": TEXT, "removed_share": "x"})["error"]["message"])
        self.assertIn("integration_steps: expected an integer from 0 to 1000", post({"text": TEXT, "integration_steps": 10**6})["error"]["message"])
        self.assertIn("method: expected one of all, ", post({"text": TEXT, "method": "guess"})["error"]["message"])
        self.assertIn("target: \"guess\" is not a label", post({"text": TEXT, "target": "guess"})["error"]["message"])

    def test_the_page_explains_entities_answers_and_masks(self):
        cases = (("words", TEXT, {}, "B-LOC"), ("masks", "the [MASK] sees a [MASK] in Paris.", {}, "fox"), ("answers", "Who sees it?", {"context": TEXT}, None))
        for name, text, more, target in cases:
            model, post = GOLDENS / "classifiers" / name, self.inspected(GOLDENS / "classifiers" / name)
            options = ["--context", TEXT, "--top", 3] if more else []
            wanted = json.loads(self.printed("classify", model, text, "--json", "--explain", *options))["explanations"]
            self.assertGreater(len(wanted), 1, name)
            for number, explanation in enumerate(wanted):
                shown = post({"text": text, "result": number, **more})
                self.assertEqual([one["target"] for one in shown.pop("results")], [one["target"] for one in wanted])
                self.assertEqual(shown, explanation)
            if target:
                wanted = json.loads(self.printed("classify", model, text, "--json", "--explain", "rollout", "--target", target))["explanations"]
                shown = post({"text": text, "result": 1, "method": "rollout", "target": target})
                self.assertEqual(shown["attributions"], wanted[1]["attributions"])
                self.assertNotEqual(shown["results"][0]["target"], shown["results"][1]["target"])
            self.assertIn("result: 99; the text has", post({"text": text, "result": 99, **more})["error"]["message"])
        self.assertIn("target: empty; expected the text that has the answer", post({"text": "Who?"})["error"]["message"])
        self.assertEqual(self.inspected(GOLDENS / "classifiers/words")({"text": " "}), {"results": []})

    def test_refusals(self):
        run = ["classify", CLASSIFIER, "night"]
        self.refused(fovea(*run, "--explain", "--target", "sport"), 2, "--target: \"sport\" is not a label", "contradiction")
        self.refused(fovea(*run, "--target", "neutral"), 2, "--target: --explain is not given")
        self.refused(fovea(*run, "--explain", "--labels", "a,b", "--target", "c"), 2, "--target: \"c\" is not a label", "one of a, b")
        self.refused(fovea(*run, "--explain", "--removed-share", "2"), 2, "--removed-share", "0.001 to 1")
        self.refused(fovea("classify", GOLDENS / "classifiers/words", TEXT, "--explain", "--target", "ORG"), 2, "--target: \"ORG\" is not a label", "B-PER")
        self.refused(fovea("classify", GOLDENS / "classifiers/masks", "a [MASK]", "--explain", "--target", "fox bird"), 2, "--target", "2 tokens")
        self.refused(fovea("classify", GOLDENS / "classifiers/answers", "who?", "--context", TEXT, "--explain", "--target", "fox"), 2, "--target", "each answer")
        self.refused(fovea("classify", GOLDENS / "classifiers/decoder", "night", "--explain", "--baseline", "mask"), 2, "--baseline: mask", "no mask token")
        self.refused(fovea("embed", GOLDENS / "sentence_model", "--explain", "x", "--format", "npy", input=b"night\n"), 2, "--format: npy cannot hold explanations")
        self.refused(fovea("embed", GOLDENS / "sentence_model", "--method", "rollout", input=b"night\n"), 2, "--method: --explain is not given")
        self.refused(fovea("trace", CLASSIFIER, "--text", "night", "--explain", "--list"), 2, "--list: cannot be combined with --explain")
        self.refused(fovea("trace", GOLDENS / "classifiers/masks", "--text", "night", "--explain"), 2, "--text: has no mask token; expected [MASK]")
        self.refused(fovea("trace", GOLDENS / "classifiers/words", "--ids", "2,3", "--explain"), 2, "ids: the model is a classifier; expected a text")
        self.refused(fovea("trace", GOLDENS / "classifiers/answers", "--text", "who?", "--explain"), 2, "answers questions", "fovea classify", "--context")
        self.refused(fovea("trace", GOLDENS / "sentence_model", "--text", "night", "--explain"), 2, "no classification head", "fovea embed")
        mixed = self.folder / "mixed"
        self.ok(self.train(mixed, "--mixer", "attention", "--mixer", "gru", steps=1))
        self.refused(fovea("trace", mixed, "--text", "the fox", "--explain", "rollout"), 2, "--explain: rollout: layer 1 is recurrent")
        found = json.loads(self.printed("trace", mixed, "--text", "the fox", "--explain", "--json"))
        self.assertEqual([one["method"] for one in found["attributions"]], ["gradient_input", "integrated_gradients"])
