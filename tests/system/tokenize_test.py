"""fovea tokenize: converts lines to ids and back, and reports errors in damaged files."""
import json
import os
import subprocess
import unittest

from support import FOVEA, ROOT, SHARED, FoveaTest, fovea, needs_shared

PYTHON = os.environ.get("PEERS_PYTHON")

WORDS = {"version": "1.0", "truncation": None, "padding": None,
         "added_tokens": [{"id": 3, "content": "</s>", "single_word": False, "lstrip": False, "rstrip": False, "normalized": False,
                           "special": True}],
         "normalizer": {"type": "Lowercase"}, "pre_tokenizer": {"type": "WhitespaceSplit"},
         "post_processor": {"type": "TemplateProcessing", "single": [{"Sequence": {"id": "A", "type_id": 0}},
                                                                     {"SpecialToken": {"id": "</s>", "type_id": 0}}],
                            "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
                            "special_tokens": {"</s>": {"id": "</s>", "ids": [3], "tokens": ["</s>"]}}},
         "decoder": None, "model": {"type": "WordLevel", "vocab": {"äh": 0, "be": 1, "[UNK]": 2}, "unk_token": "[UNK]"}}


class Tokenize(FoveaTest):
    def setUp(self):
        super().setUp()
        self.tokenizer = self.file("tokenizer.json", json.dumps(WORDS))

    def lines(self, *arguments, text):
        done = self.ok(fovea("tokenize", self.tokenizer, *arguments, input=text.encode()))
        return [json.loads(line) for line in done.stdout.splitlines()]

    def test_lines_from_standard_input_and_files_are_tokenised(self):
        expected = {"ids": [0, 1, 3], "tokens": ["äh", "be", "</s>"], "offsets": [[0, 2], [3, 5], [0, 0]]}
        self.assertEqual(self.lines(text="Äh be\n"), [expected])
        path = self.file("lines.txt", "Äh be\nbe")
        done = self.ok(fovea("tokenize", self.folder, path))
        self.assertEqual([json.loads(line)["ids"] for line in done.stdout.splitlines()], [[0, 1, 3], [1, 3]])
        self.assertEqual(self.lines("--bytes", "--no-special", text="Äh be")[0]["offsets"], [[0, 3], [4, 6]])
        self.assertEqual(self.lines(text=""), [])

    def test_special_tokens_in_a_text_stay_text(self):
        self.assertEqual(self.lines("--no-special", text="be </s>")[0]["ids"], [1, 2])
        self.assertEqual(self.lines("--no-special", "--parse-special", text="be </s>")[0]["ids"], [1, 3])

    def test_json_lines_and_pairs_are_tokenised(self):
        text = '{"text": "be\\nbe"}\n{"text": "be", "pair": "äh"}\n'
        self.assertEqual([line["ids"] for line in self.lines("--jsonl", text=text)], [[1, 1, 3], [1, 0]])
        for bad in ("{", "[]", '{"txt": 1}', '{"text": 1}', "[" * 100000):
            with self.subTest(bad[:20]):
                self.refused(fovea("tokenize", self.tokenizer, "--jsonl", input=f'{{"text": "a"}}\n{bad}\n'.encode()), 2, "line 2")

    def test_ids_are_decoded(self):
        done = self.ok(fovea("tokenize", self.tokenizer, "--decode", input=b"[0, 1, 3]\n1 0\n"))
        self.assertEqual(done.stdout.decode(), "äh be </s>\nbe äh\n")
        done = self.ok(fovea("tokenize", self.tokenizer, "--decode", "--no-special", "--json", input=b"0,1,3\n"))
        self.assertEqual(json.loads(done.stdout), {"text": "äh be"})
        for bad in (b"9\n", b"-1\n", b"x\n", b"99999999999\n"):
            with self.subTest(bad):
                self.refused(fovea("tokenize", self.tokenizer, "--decode", input=bad), 2)

    def test_check_reports_the_first_difference(self):
        good = {"text": "Äh be", "ids": [0, 1, 3], "offsets": [[0, 2], [3, 5], [0, 0]], "decoded": "äh be"}
        cases = self.file("cases.jsonl", json.dumps(good) + "\n" + json.dumps({**good, "ids": [0, 2, 3]}) + "\n")
        self.refused(fovea("tokenize", self.tokenizer, "--check", cases), 1, "line 2: ids is 1 at position 1; expected 2")
        cases.write_text(json.dumps(good))
        self.assertEqual(json.loads(self.ok(fovea("tokenize", self.tokenizer, "--check", cases, "--json")).stdout),
                         {"cases": 1, "equal": True})

    def test_invalid_requests_are_refused(self):
        self.refused(fovea("tokenize"), 2, "MODEL")
        self.refused(fovea("tokenize", self.folder / "none"), 2, "none")
        self.refused(fovea("tokenize", self.tokenizer, self.folder / "none"), 2, "none")
        self.refused(fovea("tokenize", self.tokenizer, "--decode", "--bytes"), 2, "--decode")
        for content in (b"", b"{}", b"[" * 100000, b'{"model": {"type": "Nonesuch"}}', b"\xff"):
            with self.subTest(content[:40]):
                self.tokenizer.write_bytes(content)
                self.refused(fovea("tokenize", self.tokenizer, input=b"x"), 2, "tokenizer.json")

    def test_long_runs_of_one_character_are_fast(self):
        for text in ("a" * 10**6, "^" * 10**6, " " * 10**6, "\N{MAN}\u200d" * 10**5, "e" + "\u0301" * 5 * 10**5, "\u1100" * 3 * 10**5):
            with self.subTest(text[:3]):
                self.assertEqual(len(self.lines(text=text)), 1)

    @needs_shared
    def test_fixtures_agree_with_hugging_face(self):
        for folder in sorted((SHARED / "fixtures/tokenizers").iterdir()):
            with self.subTest(folder.name):
                self.ok(fovea("tokenize", folder, "--check", folder / "cases.jsonl"))

    @unittest.skipUnless(PYTHON, "needs PEERS_PYTHON, a Python with tokenizers")
    def test_a_hundred_thousand_lines_agree_with_hugging_face(self):
        done = subprocess.run([PYTHON, str(ROOT / "tools/compare/compare_tokenizers.py"), "--fovea", FOVEA, "--lines", "100000"],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False, timeout=280)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr[-3000:])


if __name__ == "__main__":
    unittest.main()
