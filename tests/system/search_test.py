"""fovea search: building and updating the index of a folder, the results of a search, and errors."""
import json
import shutil

from support import ROOT, FoveaTest, fovea

MODEL = ROOT / "tests/goldens/sentence_model"
CROSS = ROOT / "tests/goldens/cross_encoder"


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
        self.assertNotIn(b"secret", b"".join(path.read_bytes() for path in self.index.iterdir()))

    def test_truncated_passages_are_counted(self):
        # Regression: the end of a passage above the model's limit was ignored without a message.
        self.assertNotIn(b"truncated", self.build().stderr)
        done = self.build("--passage-tokens", "1000").stderr.decode()
        self.assertIn("warning: 1 passage truncated to 12 tokens, the model's limit, the first at fox.txt: line 1; a smaller --passage-tokens avoids this\n", done)
        (self.texts / "long.txt").write_text("\n" + "the fox sees the bird in the night . " * 200)
        (self.texts / "longer.txt").write_text("the fox sees the bird in the night . " * 201)
        self.assertIn("warning: 2 passages truncated to 12 tokens, the model's limit, the first at long.txt: line 2;", self.build("--passage-tokens", "10000").stderr.decode())

    def test_only_changed_files_are_embedded(self):
        self.assertEqual(self.built(), {"files": 2, "skipped": ["data.bin"], "passages": 3, "embedded": 3})
        first = {p.name: p.read_bytes() for p in self.index.iterdir()}
        self.assertEqual(self.built()["embedded"], 0)
        self.assertEqual({p.name: p.read_bytes() for p in self.index.iterdir()}, first)
        (self.texts / "fox.txt").rename(self.texts / "moved.txt")
        (self.texts / "new.txt").write_text("the bird hears light\n")
        self.assertEqual(self.built(), {"files": 3, "skipped": ["data.bin"], "passages": 4, "embedded": 1})
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
        for name in ("graph.hnsw", "passages.jsonl", "index.json"):
            path = self.index / name
            whole = path.read_bytes()
            path.write_bytes(whole[:-20])
            self.refused(fovea("search", self.index, "x"), 2, name)
            path.write_bytes(whole)
        (self.index / "graph.hnsw").write_bytes(b"")
        self.assertEqual(self.built()["embedded"], 3)
        self.found("fox")

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
