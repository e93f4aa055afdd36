"""fovea search: building and updating the index of a folder, the results of a search, and errors."""
import json
import math
import random
import re
import shutil
import time

from support import ROOT, FoveaTest, fovea

MODEL = ROOT / "tests/goldens/sentence_model"
CROSS = ROOT / "tests/goldens/cross_encoder"
SPARSE, MULTI = ROOT / "tests/goldens/sparse_model", ROOT / "tests/goldens/multi_vector_model"
PYLATE = ROOT / "tests/goldens/pylate_model"
LINES = ["the fox sees the bird in the night", "light falls on the eye in the day", "eye", "the eye never sleeps", "a bird sleeps in the night",
         "the bird hears the fox", "day and night", "a fox never sleeps on the day"]


def bm25(query, passages):
    """Returns the numbers of the passages with a word of the query, best first (Robertson and Zaragoza 2009, section 3.4)."""
    texts = [re.findall(r"\w+", passage.lower()) for passage in passages]
    mean = sum(map(len, texts)) / len(texts)
    scores = {}
    for word in re.findall(r"\w+", query.lower()):
        containing = sum(word in text for text in texts)
        rarity = math.log(1 + (len(texts) - containing + 0.5) / (containing + 0.5))
        for i, text in enumerate(texts):
            if tf := text.count(word):
                scores[i] = scores.get(i, 0) + rarity * tf * 2.2 / (tf + 1.2 * (0.25 + 0.75 * len(text) / mean))
    return sorted(scores, key=lambda i: (-scores[i], i))


class Search(FoveaTest):
    def setUp(self):
        super().setUp()
        self.texts, self.index = self.folder / "texts", self.folder / "index"
        (self.texts / "more").mkdir(parents=True)
        self.model_folder = self.folder / "sentence model"  # without prompts, so that equal texts have equal vectors
        shutil.copytree(MODEL, self.model_folder)
        (self.model_folder / "config_sentence_transformers.json").unlink()
        (self.texts / "fox.txt").write_text("the fox sees the bird in the night .\n\nlight falls on the eye in the day .\n")
        (self.texts / "more/eye.md").write_text("eye\n\nthe eye never sleeps .\n")
        (self.texts / "data.bin").write_bytes(b"\0\1\2")

    def build(self, *more):
        return self.ok(fovea("search", "--build", self.texts, "--model", self.model_folder, "--out", self.index, "--passage-tokens", "10", *more))

    def built(self):
        return json.loads(self.build("--json").stdout)

    def files(self):
        """Returns the paths of the files of the index by their names."""
        return {str(path.relative_to(self.index)): path for path in self.index.rglob("*") if path.is_file() and path.name != ".lock"}

    def contents(self):
        """Returns the bytes of the files of the index, whatever the number of its only part, by their names."""
        return {name.split("/")[-1]: path.read_bytes() for name, path in self.files().items() if name != "index.json"}

    def found(self, query, *more):
        return json.loads(self.ok(fovea("search", self.index, query, "--json", *more)).stdout)["results"]

    def test_finds_passages_with_file_and_line(self):
        done = self.build()
        self.assertIn(b"data.bin: not a text file", done.stderr)
        self.assertEqual(done.stdout, b"2 files, 3 passages, 3 of them new\n")
        best = self.found("light falls on the eye in the day .", "--top", "3")
        self.assertEqual(len(best), 3)
        self.assertAlmostEqual(best[0]["score"], 1, places=5)
        self.assertEqual((best[0]["file"], best[0]["line"], best[0]["last_line"]), (str(self.texts / "fox.txt"), 3, 3))
        self.assertEqual(best[0]["text"], "light falls on the eye in the day .")
        self.assertEqual([p["score"] for p in best], sorted((p["score"] for p in best), reverse=True))
        text = self.ok(fovea("search", self.index, "bird", "--top", "1", "--explain")).stdout.decode()
        self.assertRegex(text, r"^\d\.\d{4}  .*\.(txt|md):\d+\n    bird +\d\.\d\d  \w+ \(line \d+\)\n  \| ")

    def test_explain_matches_each_word_of_the_query(self):
        self.build()
        for passage in self.found("the bird sees ?", "--explain"):
            self.assertEqual([m["query"] for m in passage["matches"]], ["the", "bird", "sees"])
            for match in passage["matches"]:
                self.assertIn(match["passage"], passage["text"])
                self.assertLessEqual(match["similarity"], 1.0001)
                self.assertTrue(passage["line"] <= match["line"] <= passage["last_line"])

    def test_links_out_of_the_folder_are_not_followed(self):
        (self.folder / "secret.txt").write_text("a secret of the reader\n")
        (self.texts / "out.txt").symlink_to("../secret.txt")
        (self.texts / "again.txt").symlink_to("fox.txt")
        done = self.build()
        self.assertIn(b"out.txt: a link out of the directory, skipped", done.stderr)
        self.assertTrue(done.stdout.startswith(b"3 files, "), done.stdout)
        self.assertNotIn(b"secret", b"".join(path.read_bytes() for path in self.files().values()))

    def test_truncated_passages_are_counted(self):
        # Regression: the end of a passage above the model's limit was ignored without a message.
        self.assertNotIn(b"truncated", self.build().stderr)
        done = self.build("--passage-tokens", "1000").stderr.decode()
        self.assertIn("warning: 1 passage truncated to 12 tokens, the model's limit, the first at fox.txt: line 1; a smaller --passage-tokens avoids this\n", done)
        (self.texts / "long.txt").write_text("\n" + "the fox sees the bird in the night . " * 200)
        (self.texts / "longer.txt").write_text("the fox sees the bird in the night . " * 201)
        self.assertIn("warning: 2 passages truncated to 12 tokens, the model's limit, the first at long.txt: line 2;", self.build("--passage-tokens", "10000").stderr.decode())

    def test_only_changed_files_are_embedded(self):
        same = {"skipped": ["data.bin"], "unread": [], "duplicates": 0}
        self.assertEqual(self.built(), {"files": 2, "passages": 3, "embedded": 3, **same})
        first = self.contents()
        self.assertEqual(self.built()["embedded"], 0)
        self.assertEqual(self.contents(), first)
        (self.texts / "fox.txt").rename(self.texts / "moved.txt")
        (self.texts / "new.txt").write_text("the bird hears light\n")
        self.assertEqual(self.built(), {"files": 3, "passages": 4, "embedded": 1, **same})
        (self.texts / "more/eye.md").unlink()
        self.assertEqual(self.built()["passages"], 3)

    def test_another_model_is_refused(self):
        self.build()
        self.refused(fovea("search", self.index, "x", "--model", self.other_model()), 2, "another model")
        self.ok(fovea("search", self.index, "x", "--model", self.model_folder))

    def other_model(self):
        out = self.folder / "lm"
        self.ok(fovea("train", self.text, "--out", out, "--preset", "tiny", "--steps", "1"))
        return out

    def test_a_damaged_index_is_refused_and_rebuilt(self):
        self.build()
        for name in ("1/vectors.safetensors", "1/passages.jsonl", "1/passages.safetensors", "1/words.safetensors", "index.json"):
            path = self.index / name
            whole = path.read_bytes()
            path.write_bytes(whole[:-20])
            self.refused(fovea("search", self.index, "x", "--hybrid"), 2, "passages." if name == "1/passages.jsonl" else name)
            path.write_bytes(whole)
        (self.index / "1/vectors.safetensors").write_bytes(b"")
        self.assertEqual(self.built()["embedded"], 3)
        self.found("fox")

    def lines(self, model=None):
        """Builds an index of LINES, each of which is a passage."""
        texts = self.folder / "lines"
        texts.mkdir()
        for i, line in enumerate(LINES):
            (texts / f"{i}.txt").write_text(line + "\n")
        self.ok(fovea("search", "--build", texts, "--model", model or self.model_folder, "--out", self.index, "--passage-tokens", "10"))

    def test_a_hybrid_search_adds_reciprocal_ranks(self):
        self.lines()
        query = "a bird in the day"
        by_vectors = [LINES.index(p["text"]) for p in self.found(query, "--top", "8")]
        scores = dict.fromkeys(range(8), 0)
        for ranks in (by_vectors, bm25(query, LINES)):
            for rank, i in enumerate(ranks, 1):
                scores[i] += 1 / (60 + rank)
        found = self.found(query, "--top", "8", "--hybrid")
        self.assertEqual([LINES.index(p["text"]) for p in found], sorted(scores, key=lambda i: (-scores[i], i)))
        plain = {p["text"]: p for p in self.found(query, "--top", "8")}
        for p in found:
            self.assertAlmostEqual(p["score"], scores[LINES.index(p["text"])], places=6)
            self.assertAlmostEqual(p["similarity"], plain[p["text"]]["score"], places=6)
            self.assertEqual(plain[p["text"]]["score"], plain[p["text"]]["similarity"])
        self.assertEqual(self.found(query, "--top", "2", "--hybrid"), found[:2])

    def test_sparse_vectors_are_searched_exactly(self):
        self.lines(SPARSE)
        self.assertEqual(sorted(self.files()), ["1/passages.jsonl", "1/passages.safetensors", "1/sparse.safetensors", "1/words.safetensors", "index.json"])
        rows = {}
        for task, text in (("query", "a bird sees\n"), ("document", "".join(line + "\n" for line in LINES))):
            out = self.ok(fovea("embed", SPARSE, "--task", task, "--json", input=text.encode())).stdout
            rows[task] = [dict(zip(o["indices"], o["values"])) for o in map(json.loads, out.splitlines())]
        scores = [sum(row.get(i, 0) * x for i, x in rows["query"][0].items()) for row in rows["document"]]
        found = self.found("a bird sees", "--top", "8")
        self.assertEqual([LINES.index(p["text"]) for p in found], sorted(range(8), key=lambda i: -scores[i]))
        for p in found:
            self.assertAlmostEqual(p["score"], scores[LINES.index(p["text"])], places=4)
        self.assertEqual(len(self.found("a bird sees", "--hybrid")), 5)
        self.refused(fovea("search", self.index, "x", "--explain"), 2, "sparse vectors")
        self.refused(fovea("search", self.index, "--cluster", "2"), 2, "sparse")
        first = self.contents()
        again = ("search", "--build", self.folder / "lines", "--model", SPARSE, "--out", self.index, "--passage-tokens", "10", "--json")
        self.assertEqual(json.loads(self.ok(fovea(*again)).stdout)["embedded"], 0)
        self.assertEqual(self.contents(), first)

    def test_vectors_of_tokens_are_searched_exactly(self):
        texts = "".join(line + "\n" for line in LINES).encode()
        for model in (MULTI, PYLATE):
            with self.subTest(model=model.name):
                shutil.rmtree(self.index, ignore_errors=True)
                shutil.rmtree(self.folder / "lines", ignore_errors=True)
                self.lines(model)
                self.assertIn("1/tokens.safetensors", self.files())
                run = self.ok(fovea("rerank", model, "--query", "a bird sees", "--json", input=texts))
                wanted = json.loads(run.stdout)["results"]
                found = self.found("a bird sees", "--top", "8")
                self.assertEqual([p["text"] for p in found], [r["text"] for r in wanted])
                for p, r in zip(found, wanted):
                    self.assertAlmostEqual(p["score"], r["score"], places=5)
                scores = {p["text"]: p["score"] for p in found}
                for p in self.found("a bird sees", "--hybrid", "--top", "8"):
                    self.assertAlmostEqual(p["similarity"], scores[p["text"]], places=6)
                first = self.contents()
                again = ("search", "--build", self.folder / "lines", "--model", model, "--out", self.index, "--passage-tokens", "10", "--json")
                self.assertEqual(json.loads(self.ok(fovea(*again)).stdout)["embedded"], 0)
                self.assertEqual(self.contents(), first)
                self.refused(fovea("search", self.index, "--cluster", "2"), 2, "a vector for each token")
                self.files()["2/tokens.safetensors"].write_bytes(first["tokens.safetensors"][:-1] + b"x")
                self.refused(fovea("search", self.index, "x"), 2, "tokens.safetensors", "damaged")

    def test_words_match_by_the_vectors_of_tokens(self):
        self.lines(MULTI)
        for p in self.found("a bird sees", "--explain", "--top", "8"):
            self.assertEqual([m["query"] for m in p["matches"]], ["a", "bird", "sees"])
            for m in p["matches"]:
                self.assertIn(m["passage"], p["text"])
                self.assertLessEqual(m["similarity"], 1.00001)
        # A word of the query and the same word in the same place of the same text have almost the same vector.
        best = self.found(LINES[0], "--explain", "--top", "8")
        same = next(p for p in best if p["text"] == LINES[0])
        self.assertGreater(sum(m["query"] == m["passage"] for m in same["matches"]), len(same["matches"]) / 2)

    def test_results_are_sorted_by_another_model(self):
        self.lines()
        for model in (CROSS, MULTI):
            found = self.found("a bird sees", "--rerank", model, "--top", "3")
            run = self.ok(fovea("rerank", model, "--query", "a bird sees", "--json", input="".join(line + "\n" for line in LINES).encode()))
            wanted = json.loads(run.stdout)["results"][:3]
            self.assertEqual([p["text"] for p in found], [r["text"] for r in wanted])
            for p, r in zip(found, wanted):
                self.assertAlmostEqual(p["score"], r["score"], places=5)
        candidates = self.found("a bird sees", "--rerank", MULTI, "--top", "3", "--candidates", "3")
        self.assertEqual({p["text"] for p in candidates}, {p["text"] for p in self.found("a bird sees", "--top", "3")})
        self.refused(fovea("search", self.index, "x", "--candidates", "3"), 2, "--candidates", "--rerank")
        self.refused(fovea("search", self.index, "x", "--predict", "3"), 2, "--predict", "--answer")
        self.refused(fovea("search", self.index, "x", "--typical", "3"), 2, "--typical", "--cluster")
        self.refused(fovea("search", self.index, "x", "--rerank", MODEL), 2, "not a sequence classifier")

    def test_passages_are_grouped(self):
        self.lines()
        groups = json.loads(self.ok(fovea("search", self.index, "--cluster", "3", "--json", "--typical", "8")).stdout)["clusters"]
        self.assertEqual(sum(g["passages"] for g in groups), 8)
        self.assertEqual(sorted(p["text"] for g in groups for p in g["typical"]), sorted(LINES))
        self.assertEqual([g["passages"] for g in groups], sorted((g["passages"] for g in groups), reverse=True))
        for g in groups:
            cosines = [p["score"] for p in g["typical"]]
            self.assertEqual(cosines, sorted(cosines, reverse=True))
            self.assertAlmostEqual(g["cohesion"], sum(cosines) / len(cosines), places=5)
        text = self.ok(fovea("search", self.index, "--cluster", "3")).stdout
        self.assertRegex(text.decode(), r"^\d passages, cohesion \d\.\d\d\n  \d\.\d{4}  .*\d\.txt:1  ")
        self.assertEqual(text, self.ok(fovea("search", self.index, "--cluster", "3", "--threads", "1")).stdout)
        self.refused(fovea("search", self.index, "--cluster", "9"), 2, "--cluster", "8")
        self.refused(fovea("search", self.index, "x", "--cluster", "2"), 2, "--cluster", "QUERY")

    def writer(self, context):
        """Returns a language model that has only seen quotations."""
        out = self.folder / f"writer{context}"
        text, tokenizer = self.file("quotations.txt", "it is so [1] [9]\n" * 3000), self.folder / "tokenizer"
        if not tokenizer.exists():
            self.ok(fovea("tokenize", "--train", "bpe", "--vocab-size", 300, self.text, "--out", tokenizer))
        self.ok(fovea("train", text, "--out", out, "--preset", "tiny", "--layers", 1, "--heads", 2, "--width", 32, "--batch", 1, "--context", context,
                      "--tokenizer", tokenizer, "--steps", 30, "--sample-every", 0, "--evaluate-windows", 1, "--seed", 7))
        return out

    def test_a_question_is_answered_from_the_passages(self):
        self.lines()
        model = self.writer(1024)
        ask = ("search", self.index, "what sees the bird ?", "--answer", model, "--predict", "24", "--least-score", "-1")
        done = json.loads(self.ok(fovea(*ask, "--json")).stdout)
        found = self.found("what sees the bird ?")
        self.assertEqual([s["text"] for s in done["sources"]], [p["text"] for p in found])
        self.assertEqual([s["number"] for s in done["sources"]], [1, 2, 3, 4, 5])
        numbers = {int(n) for group in re.findall(r"\[([\d, ]+)\]", done["answer"]) for n in re.findall(r"\d+", group)}
        self.assertEqual({s["number"] for s in done["sources"] if s["cited"]}, {n for n in numbers if 1 <= n <= 5})
        self.assertEqual(done["unknown_citations"], sorted(n for n in numbers if not 1 <= n <= 5))
        text = self.ok(fovea(*ask))
        self.assertTrue(text.stdout.decode(errors="replace").startswith(done["answer"]), text.stdout)
        self.assertEqual(json.loads(self.ok(fovea(*ask, "--json")).stdout), done)

    def asked(self, question, *more):
        return json.loads(self.ok(fovea("search", self.index, question, "--least-score", "-1", "--json", *more)).stdout)

    def answerer(self, answers):
        """Returns a chat model that has learnt the answers to some questions, asked with the passages that the search finds for them."""
        chats, texts = [], []
        for question, answer in answers.items():
            passages = [passage["text"] for passage in self.found(question)]
            number = next((i + 1 for i, text in enumerate(passages) if "fox sees" in text), 0)
            prompt = ("Answer the question with the numbered passages, and with nothing else. After each statement, write the number of the passage "
                      "that supports it in brackets, such as [1]. If the passages do not answer the question, write only NO ANSWER.\n"
                      + "".join(f"\n[{i + 1}] {text}\n" for i, text in enumerate(passages)) + f"\nQuestion: {question}\n")
            messages = [{"role": "user", "content": prompt}, {"role": "assistant", "content": answer.replace("[n]", f"[{number}]")}]
            chats.append(json.dumps({"messages": messages}))
            texts += [prompt, messages[1]["content"]]
        data, tokenizer, base, out = self.file("chats.jsonl", "\n".join(chats) + "\n"), self.folder / "words", self.folder / "base", self.folder / "answerer"
        self.ok(fovea("tokenize", "--train", "bpe", "--vocab-size", 500, "--special-token", "<|im_start|>", "--special-token", "<|im_end|>",
                      self.file("prompts.txt", "\n".join(texts)), "--out", tokenizer))
        sizes = ["--preset", "tiny", "--layers", 2, "--heads", 2, "--width", 32, "--context", 512, "--tokenizer", tokenizer]
        self.ok(fovea("train", self.text, "--out", base, *sizes, "--batch", 1, "--steps", 1, "--sample-every", 0,
                      "--evaluate-windows", 1, "--seed", 7))
        self.ok(fovea("train", data, "--from", base, "--chat-template", "chatml", "--out", out, "--batch", len(chats), "--steps", 120, "--lr", "0.01",
                      "--warmup", 5, "--validation", 0, "--dtype", "fp32", "--sample-every", 0))
        return out

    def test_a_model_that_has_learnt_to_answer_quotes_and_refuses(self):
        self.build()
        model = self.answerer({"who sees the bird ?": "the fox does [n].", "who hears the day ?": "NO ANSWER"})
        done = self.asked("who sees the bird ?", "--answer", model)
        cited = [source["text"] for source in done["sources"] if source["cited"]]
        self.assertTrue(done["answered"] and done["supported"], done)
        self.assertRegex(done["answer"], r"^the fox does \[\d\]\.$")
        self.assertEqual((cited, done["unknown_citations"]), (["the fox sees the bird in the night ."], []))
        text = self.ok(fovea("search", self.index, "who sees the bird ?", "--answer", model, "--least-score", "-1")).stdout.decode()
        self.assertRegex(text, r"^the fox does \[\d\]\.\n\n\[\d\] .*fox.txt:1\n")
        done = self.asked("who hears the day ?", "--answer", model)
        self.assertEqual((done["answered"], done["answer"]), (False, "NO ANSWER"))
        self.assertEqual([source for source in done["sources"] if source["cited"]], [])

    def reader(self, homes, drinks):
        """Returns a model that finds answers in a text, trained on facts about the same people, but no fact of `homes` and `drinks`."""
        generator, paragraphs, people = random.Random(5), [], sorted(homes)
        cities = sorted(homes.values()) + ["delhi", "quito", "tunis", "minsk", "accra", "hanoi"]
        cups = sorted(drinks.values()) + ["cider", "beer", "wine", "soda", "broth", "lemonade"]
        for i in range(4000):
            person = generator.choice(people)
            about = person if generator.random() < 0.5 else generator.choice([one for one in people if one != person])
            city = generator.choice([one for one in cities if one != homes[person]])
            cup = generator.choice([one for one in cups if one != drinks[person]])
            facts = [f"{person} lives in {city} .", f"{person} drinks {cup} ."]
            text = " ".join(generator.sample(facts, generator.choice((1, 2, 2))))
            asked, answer = ((f"where does {about} live ?", city), (f"what does {about} drink ?", cup))[generator.randrange(2)]
            known = about == person and answer in text
            paragraphs.append({"context": text, "qas": [{"id": str(i), "question": asked, "is_impossible": not known,
                                                         "answers": [{"text": answer, "answer_start": text.index(answer)}] if known else []}]})
        data = self.file("facts.json", json.dumps({"version": "v2.0", "data": [{"title": "facts", "paragraphs": paragraphs}]}))
        out = self.folder / "reader"
        self.ok(fovea("train", "--labels", data, "--out", out, "--preset", "bert-base", "--encoder-layers", 2, "--encoder-heads", 4, "--width", 64,
                      "--encoder-pre-norm", "true", "--encoder-post-norm", "false", "--encoder-final-norm", "true", "--encoder-embedding-norm", "false",
                      "--context", 64, "--batch", 32, "--warmup", 20, "--steps", 1000, "--lr", "0.003", "--dropout", 0, "--dtype", "fp32", "--seed", 7,
                      "--tokenizer", "wordpiece:300", "--save-every", 0))
        return out

    def test_a_reader_answers_questions_about_facts_that_it_has_not_seen(self):
        homes = {"anna": "paris", "ben": "rome", "carl": "bonn", "dora": "oslo", "emil": "lima", "fred": "cairo"}
        drinks = {"anna": "tea", "ben": "milk", "carl": "water", "dora": "juice", "emil": "coffee", "fred": "cocoa"}
        model = self.reader(homes, drinks)
        shutil.rmtree(self.texts)
        self.texts.mkdir()
        for person in sorted(homes)[:4]:  # no passage is about Emil and Fred
            drink = "" if person == "dora" else f" {person} drinks {drinks[person]} ."
            (self.texts / f"{person}.txt").write_text(f"{person} lives in {homes[person]} .{drink}\n")
        self.ok(fovea("search", "--build", self.texts, "--model", self.model_folder, "--out", self.index))
        cases = [(f"where does {person} live ?", homes[person], person) for person in sorted(homes)]
        cases += [(f"what does {person} drink ?", drinks[person], person) for person in sorted(drinks)]
        for question, answer, person in cases:
            done = self.asked(question, "--answer", model, "--top", 9)  # all passages
            known = person not in ("emil", "fred") and (question.startswith("where") or person != "dora")
            self.assertEqual(done["answered"], known, done)
            cited = [source for source in done["sources"] if source["cited"]]
            self.assertGreaterEqual(len(done["sources"]), 4)
            if known:
                self.assertEqual(done["answer"], f"{answer} [{cited[0]['number']}]", question)
                self.assertEqual([source["file"] for source in cited], [str(self.texts / f"{person}.txt")])
                self.assertGreater(done["score"], 0.1)
            else:
                self.assertEqual((done["answer"], cited, "score" in done), ("", [], False))
        ask = ("search", self.index, "where does anna live ?", "--answer", model, "--least-score", "-1")
        self.assertRegex(self.ok(fovea(*ask)).stdout.decode(), r"^paris \[(\d)\]\n\n\[\1\] .*anna.txt:1\n$")
        self.refused(fovea(*ask, "--predict", 3), 2, "--predict", "finds answers")
        empty = self.ok(fovea("search", self.index, "where does emil live ?", "--answer", model, "--least-score", "-1"))
        self.assertEqual((empty.stdout, b"do not answer the question" in empty.stderr), (b"", True))

    def test_a_question_without_similar_passages_is_not_answered(self):
        self.lines()
        model = self.writer(64)
        ask = ("search", self.index, "what sees the bird ?", "--answer", model)
        done = self.ok(fovea(*ask, "--least-score", "2", "--json"))
        self.assertIn(b"no passage has a similarity of at least 2 to the question", done.stderr)
        self.assertEqual(json.loads(done.stdout), {"question": "what sees the bird ?", "answered": False, "supported": False, "answer": "", "sources": [],
                                                   "unknown_citations": []})
        self.assertEqual(self.ok(fovea(*ask, "--least-score", "2")).stdout, b"")
        self.refused(fovea(*ask, "--least-score", "-1"), 2, "question", "tokens with one passage")
        for name in (CROSS, ROOT / "tests/goldens/classifiers/texts", ROOT / "tests/goldens/classifiers/masks"):
            self.refused(fovea("search", self.index, "x", "--answer", name), 2, "--answer", "generates no text and has no head for answers")

    def test_short_vectors_find_what_long_ones_find(self):
        """int8 rounds the vectors; with few passages, binary compares all of them by int8, too."""
        wanted, lines = {}, self.folder / "lines"
        self.lines()
        for query in ("a bird sees", "the day"):
            wanted[query] = {p["text"]: p["score"] for p in self.found(query, "--top", "8")}
        for form in ("int8", "binary"):
            self.ok(fovea("search", "--build", lines, "--model", self.model_folder, "--out", self.index, "--passage-tokens", "10", "--vectors", form))
            for query, scores in wanted.items():
                found = self.found(query, "--top", "8")
                self.assertEqual(len(found), 8)
                for p in found:
                    self.assertAlmostEqual(p["score"], scores[p["text"]], delta=0.01)
            self.assertEqual(len(self.found("the day", "--hybrid", "--top", "3")), 3)
            self.ok(fovea("search", self.index, "--cluster", "2"))
        self.refused(fovea("search", "--build", lines, "--model", SPARSE, "--out", self.index, "--vectors", "int8"), 2, "--vectors", "float32")
        self.refused(fovea("search", "--build", lines, "--model", self.model_folder, "--out", self.index, "--vectors", "int4"), 2, "--vectors", "int4")
        self.refused(fovea("search", self.index, "x", "--vectors", "int8"), 2, "--vectors", "--build")

    def test_a_graph_is_searched_if_asked(self):
        self.lines()
        wanted = self.found("a bird sees", "--top", "3")
        self.refused(fovea("search", self.index, "x", "--graph-candidates", "16"), 2, "--graph-candidates", "no graph")
        build = ("search", "--build", self.folder / "lines", "--model", self.model_folder, "--out", self.index, "--passage-tokens", "10", "--graph")
        self.assertIn(b"--graph-candidates 16: finds 100.0% of the 10 nearest passages\n", self.ok(fovea(*build)).stdout)
        self.assertEqual([r["candidates"] for r in json.loads(self.ok(fovea(*build, "--json")).stdout)["recall"]], [16, 32, 64, 128, 256, 512])
        self.assertEqual(self.found("a bird sees", "--top", "3", "--graph-candidates", "16"), wanted)
        self.refused(fovea(*build, "--vectors", "int8"), 2, "--graph", "--vectors")

    def test_files_are_added_and_deleted(self):
        self.build()
        (self.texts / "new.txt").write_text("the bird hears light\n")
        self.assertEqual(self.ok(fovea("search", self.index, "--add", self.texts / "new.txt")).stdout, b"1 files, 1 passages, 1 of them new\n")
        best = self.found("the bird hears light", "--top", "1")
        self.assertEqual((best[0]["file"], best[0]["line"]), (str(self.texts / "new.txt"), 1))
        # Paths are relative to the working directory or to the indexed directory.
        done = self.ok(fovea("search", self.index, "--delete", "new.txt", "more"))
        self.assertEqual(done.stdout, b"2 files deleted\n")
        self.assertEqual({p["file"] for p in self.found("eye", "--top", "9")}, {str(self.texts / "fox.txt")})
        done = json.loads(self.ok(fovea("search", self.index, "--add", "more", "--delete", "fox.txt", "--json")).stdout)
        self.assertEqual((done["files"], done["embedded"]), (1, 1))
        self.assertEqual({p["file"] for p in self.found("eye", "--top", "9")}, {str(self.texts / "more/eye.md")})
        self.refused(fovea("search", self.index, "--delete", "new.txt"), 2, "new.txt", "neither an indexed file")
        self.refused(fovea("search", self.index, "--add", self.folder / "none"), 2, "none", "below")
        self.refused(fovea("search", self.index, "x", "--add", "more"), 2, "--add", "QUERY")
        self.refused(fovea("search", self.texts, "--add", "more"), 2, "not a search index")
        self.assertFalse((self.texts / ".lock").exists())

    def test_a_killed_change_loses_nothing(self):
        self.build()
        wanted = self.found("bird")
        (self.texts / "many.txt").write_text("\n\n".join(f"the fox sees the bird {i} times in the night ." for i in range(3000)))
        for delay in (0.02, 0.05, 0.1, 0.2, 0.4):
            process = self.start("search", self.index, "--add", "many.txt")
            time.sleep(delay)
            process.kill()
            if process.wait() == 0:
                break
            found = self.found("bird")
            if found != wanted:  # the process was killed when its change was complete
                self.ok(fovea("search", self.index, "--add", "many.txt"))
                self.assertEqual(self.found("bird"), found)
                break
        self.ok(fovea("search", self.index, "--delete", "fox.txt"))
        self.assertEqual(len(list(self.index.glob(".saving*"))), 0)

    def test_conditions_select_passages_before_they_are_ranked(self):
        rows = [{"text": line, "label": "bird" if "bird" in line else "none", "size": len(line), "date": f"2025-0{i + 1}-01"} for i, line in enumerate(LINES)]
        (self.texts / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        self.build()
        for conditions, fits in (((), lambda row: True), (("label=bird",), lambda row: row["label"] == "bird"),
                                 (("size>=20", "size<30"), lambda row: 20 <= row["size"] < 30),
                                 (("date>=2025-03", "date<2025-06", "label!=bird"), lambda row: "2025-03" <= row["date"] < "2025-06" and row["label"] != "bird")):
            options = [o for c in ("file=rows.jsonl", *conditions) for o in ("--where", c)]
            found = self.found("the eye in the day", "--top", "9", *options)
            self.assertEqual({p["text"] for p in found}, {row["text"] for row in rows if fits(row)})
            self.assertEqual([p["score"] for p in found], sorted((p["score"] for p in found), reverse=True))
            hybrid = self.found("the eye in the day", "--top", "9", "--hybrid", *options)
            self.assertEqual({p["text"] for p in hybrid}, {p["text"] for p in found})
            for p in found:
                row = rows[p["line"] - 1]
                self.assertEqual(p["fields"], {k: row[k] for k in ("label", "size", "date")})
        self.assertEqual({p["file"] for p in self.found("eye", "--where", "file=more/*")}, {str(self.texts / "more/eye.md")})
        self.assertEqual(self.found("eye", "--where", "file=none"), [])
        self.refused(fovea("search", self.index, "x", "--where", "label"), 2, "--where", "NAME=VALUE")
        self.refused(fovea("search", self.index, "x", "--where", "date>=yesterday"), 2, "--where", "date")

    def test_equal_passages_are_found_once(self):
        (self.texts / "again.txt").write_text("light  falls on the\neye in the day .\n")
        done = self.build()
        self.assertTrue(done.stdout.endswith(b" of them new\nleft out 1 passage with the text of another\n"), done.stdout)
        self.assertEqual([p["file"] for p in self.found("eye", "--top", "9") if "light" in p["text"]], [str(self.texts / "again.txt")])
        self.assertEqual([p["line"] for p in self.found("eye", "--top", "9", "--where", "file=fox.txt") if "light" in p["text"]], [3])

    def test_invalid_requests_are_refused(self):
        self.refused(fovea("search"), 2, "INDEX")
        self.refused(fovea("search", self.index), 2, "QUERY")
        self.refused(fovea("search", self.folder / "none", "x"), 2, "none")
        self.refused(fovea("search", self.texts, "x"), 2, "not a search index")
        self.refused(fovea("search", self.index, "x", "--out", "y"), 2, "--out")
        self.refused(fovea("search", "--build", self.texts, "--out", self.index), 2, "--model")
        self.refused(fovea("search", "--build", self.folder / "none", "--model", MODEL, "--out", self.index), 2, "none")
        self.refused(fovea("search", "--build", self.texts, "--model", CROSS, "--out", self.index), 2, "Pooling")
        self.refused(fovea("search", "--build", self.texts, "--model", MODEL, "--out", self.texts), 2, "not a search index")
        empty = self.folder / "empty"
        empty.mkdir()
        self.refused(fovea("search", "--build", empty, "--model", MODEL, "--out", self.index), 2, "no text")
        self.assertFalse(self.index.exists())
