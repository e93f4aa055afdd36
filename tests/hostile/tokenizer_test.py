"""Inconsistent tokenizer.json files, patterns that backtrack, repetitive texts, and expanding templates."""
import copy
import json
import unittest

from hostile import SANITIZED, TOKENIZER, HostileTest

BPE = {**TOKENIZER, "model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2}, "merges": [["a", "b"]], "unk_token": None}}
UNIGRAM = {**TOKENIZER, "model": {"type": "Unigram", "unk_id": 0, "vocab": [["?", 0.0], ["a", -1.0], ["b", -2.0]]}}


def special(id, text, **more):
    return {"id": id, "content": text, "special": True, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False, **more}


def split(expression):
    return {"type": "Split", "pattern": {"Regex": expression}, "behavior": "Isolated", "invert": False}


class HostileTokenizer(HostileTest):
    def path(self, tokenizer):
        return self.write("hostile.json", tokenizer)

    def tokenize(self, pattern, tokenizer, text=b"a b\n"):
        path = self.path(tokenizer)
        lines = self.folder / "lines.txt"
        lines.write_bytes(text)
        if pattern is None:
            self.accepted("tokenize", path, lines)
        else:
            self.refused(pattern, "tokenize", path, lines)

    def damaged(self, base, place, value, pattern):
        with self.subTest(place=place, value=repr(value)[:80]):
            tokenizer = copy.deepcopy(base)
            at = tokenizer
            for key in place[:-1]:
                at = at[key]
            at[place[-1]] = value
            self.tokenize(rf"hostile\.json: .*{pattern}", tokenizer)

    def test_invalid_vocabularies_are_refused(self):
        for wrong in (-1, 2, 9, 1.5, "x", None, 2**31, 2**63, 2**64):  # 2 is the id of a different token, 9 leaves a gap
            self.damaged(TOKENIZER, ["model", "vocab", "a"], wrong, r"model\.vocab")
        self.damaged(TOKENIZER, ["model", "vocab"], {}, r"model")
        self.damaged(TOKENIZER, ["model", "vocab"], [], r"model")
        self.damaged(TOKENIZER, ["model", "vocab"], {"?": 0, "x" * 70000: 1}, "")
        self.damaged(TOKENIZER, ["model", "unk_token"], "none", r"model\.unk_token")
        for wrong in ("Nonesuch", 5, None, ""):
            self.damaged(TOKENIZER, ["model", "type"], wrong, "model")
        self.tokenize(r"hostile\.json", json.dumps(TOKENIZER).replace('"a": 1', '"\\ud800": 1'))
        self.tokenize(r"hostile\.json", json.dumps(TOKENIZER).replace('"a": 1', '"a": 1, "a": 1'))

    def test_invalid_merges_are_refused(self):
        for wrong in ([["a", "x"]], [["b", "a"]], [["a"]], [["a", "b", "c"]], ["ab"], ["a b c"], [5], 5, [["", "ab"]]):
            self.damaged(BPE, ["model", "merges"], wrong, "merges")
        self.damaged(BPE, ["model", "dropout"], 0.5, "dropout")
        self.damaged(BPE, ["model", "byte_fallback"], "x", "byte_fallback")

    def test_malformed_byte_pieces_are_plain_text(self):
        for piece in ("<0x-1>", "<0xZZ>", "<0x100>", "<0x>"):  # a byte piece is <0x00> to <0xFF>
            self.tokenize(None, {**BPE, "model": {**BPE["model"], "vocab": {**BPE["model"]["vocab"], piece: 3}, "byte_fallback": True}})

    def test_invalid_unigram_models_are_refused(self):
        for wrong in (3, -1, 2**31, "x", 1.5):
            self.damaged(UNIGRAM, ["model", "unk_id"], wrong, "unk_id")
        for wrong in ([], [["?"]], [["?", 0.0], ["a", "x"]], [["?", 0.0], [5, -1.0]], [["?", 0.0], ["a", None]], 5):
            self.damaged(UNIGRAM, ["model", "vocab"], wrong, "vocab")

    def test_invalid_added_tokens_are_refused(self):
        for wrong in ([special(0, "z")], [special(9, "z")], [special(-1, "z")], [special(2**31, "z")], [special(8, "a")], [special(8, "")], 5,
                      [5], [{}], [special(8, "z", lstrip=5)], [special("8", "z")]):
            self.damaged(TOKENIZER, ["added_tokens"], wrong, "added_tokens|two ids")

    def test_invalid_parts_are_refused(self):
        for part in ("normalizer", "pre_tokenizer", "post_processor", "decoder"):
            for wrong in ({"type": "Nonesuch"}, {"type": 5}, {}, 5, "x", []):
                self.damaged(TOKENIZER, [part], wrong, part)
            deep = {"type": "Sequence"}
            for _ in range(70):
                deep = {"type": "Sequence", "normalizers": [deep], "pretokenizers": [deep], "processors": [deep], "decoders": [deep]}
                if len(json.dumps(deep)) > 1 << 16:
                    break
            self.damaged(TOKENIZER, [part], deep, "")
        self.damaged(TOKENIZER, ["normalizer"], {"type": "Precompiled", "precompiled_charsmap": "/////w=="}, "normalizer")
        self.damaged(TOKENIZER, ["pre_tokenizer"], {"type": "FixedLength", "length": 0}, "pre_tokenizer")
        self.damaged(TOKENIZER, ["post_processor"], {"type": "BertProcessing", "sep": ["x", 99], "cls": ["y", 0]}, "post_processor")
        self.damaged(TOKENIZER, ["padding"], {"strategy": {"Fixed": 1 << 40}, "direction": "Right"}, "padding")
        self.damaged(TOKENIZER, ["truncation"], {"max_length": -1}, "truncation")

    def test_backtracking_is_limited(self):
        for wrong in ("(", "[", "(?", "a{", "\\", "[z-a]", "(x{1000}){1000}{1000}", "((((x{1000}){1000}){1000}){1000}){1000}", "(" * 5000,
                      "x" * 100_000, "(?<n>a)\\g<n>", "(?#"):
            code, message, _ = self.run_limited("tokenize", self.path({**TOKENIZER, "pre_tokenizer": split(wrong)}), self.write("t.txt", "a"))
            with self.subTest(wrong[:40]):
                self.assertIn(code, (0, 2, 3), message)
        text = b"a" * 50_000 + b"!\n"
        for expression in ("(a+)+$", "(a|a)*b", ".*.*.*=", "(.*)*=", "(a*)*c", "(a|aa)+$", "(?:a?){40}a{40}"):
            with self.subTest(expression):  # within the time limit, or refused
                lines = self.write("t.txt", text)
                code, message, _ = self.run_limited("tokenize", self.path({**TOKENIZER, "pre_tokenizer": split(expression)}), lines)
                self.assertIn(code, (0, 2, 3), message)

    def test_expansion_is_limited(self):
        """Regression: small tokenizer.json files expanded texts without limit."""
        def replace(pattern, content):
            return {"type": "Replace", "pattern": pattern, "content": content}
        doubled = {"type": "Sequence", "normalizers": [replace({"String": "a"}, "aa")] * 40}
        printed = {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": False}
        template = {"type": "TemplateProcessing", "single": [{"Sequence": {"id": "A", "type_id": 0}}] * 2000, "pair": [], "special_tokens": {}}
        stride = {"max_length": 5000, "stride": 4999, "strategy": "LongestFirst", "direction": "Right"}
        padding = {"strategy": {"Fixed": 1 << 20}, "direction": "Right", "pad_to_multiple_of": None, "pad_id": 0, "pad_type_id": 0,
                   "pad_token": "x" * 60_000}
        for part, value, text in (("normalizer", doubled, b"a b\n"), ("normalizer", replace({"Regex": ""}, "x" * 60_000), b"a b\n"),
                                  ("pre_tokenizer", {"type": "Sequence", "pretokenizers": [printed] * 60}, "ä ä\n".encode()),
                                  ("post_processor", template, b"a b " * 500), ("truncation", stride, b"a b " * 5000),
                                  ("padding", padding, b"a b\n")):
            with self.subTest(part):
                self.tokenize(rf"expands a text of \d+ bytes too much \({part}\)", {**TOKENIZER, part: value}, text)
        self.tokenize(r"a sequence of more than 256", {**TOKENIZER, "normalizer": {"type": "Sequence", "normalizers": [{"type": "NFC"}] * 300}})

    def test_long_pieces_take_linear_time(self):
        """Regression: one piece of 60 KB made the time quadratic: 40,000 characters took 19 seconds."""
        long, text = "a" * 60_000, b"a" * (100_000 if SANITIZED else 2_000_000) + b"\n"
        unigram = {"type": "Unigram", "unk_id": 0, "vocab": [["?", 0.0], ["a", -1.0], [long + "b", -1.0]]}
        words = {"type": "WordPiece", "unk_token": "?", "continuing_subword_prefix": "##", "max_input_chars_per_word": 10**9,
                 "vocab": {"?": 0, "a": 1, "##a": 2, "##" + long + "b": 3}}
        for model in (unigram, words):
            with self.subTest(model["type"]):
                self.tokenize(None, {**TOKENIZER, "pre_tokenizer": None, "model": model}, text)

    def test_a_long_line_takes_linear_memory(self):
        """Regression: a line of 12 MB took 3.5 GB of memory."""
        if SANITIZED:
            self.skipTest("sanitizers need far more memory")
        byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
        vocab = {chr(c): c - 33 for c in range(33, 127)}
        vocab.update({"Ġ": 94, "he": 95, "Ġt": 96, "Ġthe": 97})
        model = {"type": "BPE", "vocab": vocab, "merges": [["h", "e"], ["Ġ", "t"], ["Ġt", "he"]], "unk_token": None}
        lines = self.write("lines.txt", b" the the he the" * 400_000)
        code, message, memory = self.run_limited("tokenize", self.path({**TOKENIZER, "pre_tokenizer": byte_level, "model": model}), lines)
        self.assertEqual(code, 0, message)
        self.assertLess(memory - self.usual_memory, 40 * lines.stat().st_size)

    def test_quadratic_patterns_are_refused(self):
        """Regression: the search from each position read to the end of the text, which PCRE2 counts as few steps."""
        tokenizer = {**TOKENIZER, "pre_tokenizer": split(r"(?=(a+))a*b\1")}
        self.tokenize("the regular expression fails on a text: it takes too long", tokenizer, b"a" * 300_000 + b"b\n")

    def test_repetitive_texts_are_tokenised(self):
        size = 100_000 if SANITIZED else 1_000_000
        texts = {"a": b"a", "hats": b"^", "spaces": b" ", "family": "\U0001f468\u200d".encode(), "marks": "a\u0301\u0327".encode(),
                 "wide": "\U0001d54f".encode()}
        for name, tokenizer in {"words": TOKENIZER, "bpe": BPE, "unigram": UNIGRAM,
                                "nfd": {**TOKENIZER, "normalizer": {"type": "NFD"}}, "nfkc": {**TOKENIZER, "normalizer": {"type": "NFKC"}},
                                "no split": {**BPE, "pre_tokenizer": None}}.items():
            for kind, unit in texts.items():
                with self.subTest(tokenizer=name, text=kind):
                    self.tokenize(None, tokenizer, unit * (size // len(unit)) + b"\n")

    def test_names_of_special_tokens_stay_text(self):
        tokenizer = {**TOKENIZER, "added_tokens": [special(7, "g")]}
        self.tokenize(None, tokenizer, b"g g\n")
        self.damaged({**TOKENIZER, "added_tokens": [special(7, "g")]}, ["added_tokens"], [special(6, "g")], "two ids|added_tokens")


class HostileVocabularyFiles(HostileTest):
    """Vocabularies in older formats, each file on its own."""

    def refuse_folder(self, files, pattern):
        folder = self.folder / "old"
        folder.mkdir(exist_ok=True)
        for path in folder.iterdir():
            path.unlink()
        for name, content in files.items():
            (folder / name).write_bytes(content)
        with self.subTest(names=list(files), pattern=pattern):
            self.refused(pattern, "tokenize", folder, self.write("t.txt", "a b"))

    def test_damaged_vocabulary_files_are_refused(self):
        self.refuse_folder({}, "old")
        self.refuse_folder({"vocab.txt": b""}, "vocab")
        self.refuse_folder({"vocab.txt": b"a\na\n"}, "vocab")
        self.refuse_folder({"vocab.txt": b"\xff\xfe\n"}, "vocab")
        self.refuse_folder({"vocab.json": b"{}", "merges.txt": b"a b\n"}, "vocab|merges")
        self.refuse_folder({"vocab.json": b'{"a": 0}', "merges.txt": b"a b\n"}, "vocab|merges")
        self.refuse_folder({"vocab.json": b'{"a": 0}'}, "merges")
        for content in (b"", b"\xff" * 100, b"\x0a\xff\xff\xff\xff\x0f", b"\x0a\x05\x0a\x01a", bytes(range(256)) * 8):
            self.refuse_folder({"tokenizer.model": content}, "tokenizer")


if __name__ == "__main__":
    unittest.main()
