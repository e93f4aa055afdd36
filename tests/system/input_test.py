"""Texts and models that are missing, damaged or hostile."""
import gzip
import json
import unittest

from support import SHARED, FoveaTest, fovea, needs_shared, text_of


class Texts(FoveaTest):
    def plan(self, *data):
        return fovea("train", *data, "--dry-run", "--json", "--preset", "tiny")

    def test_special_files_and_empty_texts_are_refused(self):
        for path in (self.folder / "none.txt", self.file("empty.txt", ""), self.file("one.txt", "x"), "/proc/self/mem"):
            with self.subTest(path=str(path)):
                self.refused(self.plan(path), 2, path)

    def test_a_text_shorter_than_the_context_is_refused(self):
        self.refused(self.plan(self.file("short.txt", "To be, or not to be. " * 3)), 2)

    def test_an_empty_folder_is_refused(self):
        empty = self.folder / "empty"
        empty.mkdir()
        self.refused(self.plan(empty), 2, empty)

    def test_invalid_text_is_refused_or_reported(self):
        good = text_of().encode()
        cases = {"binary": bytes(range(256)) * 100, "latin-1": good + "é".encode("latin-1") * 50 + good,
                 "zeros": b"\0" * 20000, "gz": gzip.compress(good * 20)[:-9], "surrogate": good + b"\xed\xa0\x80" + good}
        for name, content in cases.items():
            with self.subTest(name):
                path = self.file(name, content)
                result = self.plan(path)
                if result.returncode == 0:
                    self.assertTrue(json.loads(result.stdout)["notes"])
                else:
                    self.refused(result, 2, path)

    def test_harmless_texts_are_accepted(self):
        lines = text_of().encode()
        cases = {"crlf": lines.replace(b"\n", b"\r\n"), "mark": b"\xef\xbb\xbf" + lines, "no newline": lines.strip(),
                 "one line": lines.replace(b"\n", b" ") * 100, "umlauts": lines + "äöü漢字🦊".encode() * 100}
        for name, content in cases.items():
            with self.subTest(name):
                self.ok(self.plan(self.file(name, content)))

    def test_several_files_and_a_folder_are_read_without_links(self):
        folder = self.folder / "texts"
        folder.mkdir()
        (folder / "a.txt").write_text(text_of(5000, 2))
        (folder / "b.txt").write_text(text_of(5000, 3))
        (folder / "c.jsonl").write_text("\n".join(json.dumps({"text": text_of(500, i)}) for i in range(10)))
        self.ok(self.plan(folder))
        self.ok(self.plan(folder / "a.txt", folder / "b.txt"))
        self.ok(self.plan(folder / "c.jsonl"))
        whole = json.loads(self.ok(self.plan(folder)).stdout)
        (folder / "d.txt").symlink_to(self.file("secret.txt", "secret " * 1000))
        told = json.loads(self.ok(self.plan(folder)).stdout)
        note, = [note for note in told["notes"] if "links" in note]
        self.assertIn("d.txt", note)
        for key in ("training_tokens", "validation_tokens", "vocabulary", "epochs"):
            self.assertEqual(told[key], whole[key], "the same text")

    def test_errors_name_the_json_line(self):
        good = json.dumps({"text": text_of(3000)})
        for bad in ("{", '{"txt": 1}', '{"text": 5}', "[" * 10000):
            with self.subTest(bad[:20]):
                path = self.file("bad.jsonl", f"{good}\n{bad}\n{good}\n")
                self.refused(self.plan(path), 2, path, "2")

    @needs_shared
    def test_tiny_shakespeare_has_65_characters(self):
        plan = json.loads(self.ok(self.plan(SHARED / "data/tinyshakespeare.txt")).stdout)
        self.assertEqual(plan["vocabulary"], 66)  # and <unk>
        self.assertEqual(plan["training_tokens"] + plan["validation_tokens"], 1115394)


class Models(FoveaTest):
    def refuses(self, model, *mentions):
        self.refused(fovea("generate", model, "-p", "The", "-n", "3"), 2, *mentions)

    def test_missing_files_are_named(self):
        self.refuses(self.folder / "none", "none")
        self.refuses(self.text)
        (self.folder / "empty").mkdir()
        self.refuses(self.folder / "empty", "empty: has no config.json; expected a model's directory")
        self.refuses("")

    def test_damaged_weights_are_refused(self):
        weights = self.model() / "model.safetensors"
        whole = weights.read_bytes()
        cases = {"empty": b"", "seven bytes": whole[:7], "cut": whole[:-1], "half": whole[:len(whole) // 2],
                 "longer": whole + b"\0", "huge header": b"\xff" * 8 + whole[8:], "no JSON": whole[:8] + b"x" + whole[9:]}
        for name, content in cases.items():
            with self.subTest(name):
                weights.write_bytes(content)
                self.refuses(self.model(), "model.safetensors")

    def test_a_damaged_config_is_refused(self):
        path = self.model() / "config.json"
        whole = json.loads(path.read_text())
        cases = [b"", b"{", b"[]", b"\xff", b"[" * 100000, json.dumps({**whole, "model_type": "nonesuch"}).encode()]
        for key, value in whole.items():
            if isinstance(value, int) and not isinstance(value, bool) and key.startswith("n_"):
                cases += [json.dumps({**whole, key: wrong}).encode() for wrong in (0, -1, "x", 2**31, 2**63)]
        for content in cases:
            with self.subTest(content[:300]):
                path.write_bytes(content)
                self.refuses(self.model(), "config.json")

    def test_a_damaged_tokenizer_is_refused(self):
        path = self.model() / "tokenizer.json"
        for content in (b"", b"{", b"[]", b"{}", b"[" * 100000, b'{"model": {"type": "Nonesuch"}}'):
            with self.subTest(content[:40]):
                path.write_bytes(content)
                self.refuses(self.model(), "tokenizer.json")

    def test_pickles_are_not_read(self):
        folder = self.folder / "pickled"
        folder.mkdir()
        (folder / "config.json").write_bytes((self.model() / "config.json").read_bytes())
        (folder / "pytorch_model.bin").write_bytes(b"\x80\x02}q\x00.")
        self.refuses(folder)


if __name__ == "__main__":
    unittest.main()
