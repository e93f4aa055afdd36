"""Hostile weights: lengths, headers, offsets, shapes, names, indexes and links."""
import os
import struct
import unittest

from hostile import SHAPES, HostileTest, entries, raw, weights

GOOD = weights(SHAPES)
ONE = {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}


class HostileWeights(HostileTest):
    def bad(self, pattern, content, **how):
        with self.subTest(pattern=pattern):
            self.write("model.safetensors", content)
            self.refused(pattern, **how)

    def test_invalid_lengths_are_refused(self):
        for size in (0, 1, 7):
            self.bad(rf"model\.safetensors: has {size} bytes", GOOD[:size])
        self.bad("does not begin with", b"\0" * 8)
        for length in (1 << 63, (1 << 64) - 1, (1 << 64) - 8, len(GOOD)):
            self.bad(rf"header length {length}.*file size", struct.pack("<Q", length) + GOOD[8:])
        self.bad("", GOOD[:-1])
        self.bad("", GOOD + b"\0")
        for cut in range(8, len(GOOD), 97):
            self.bad("", GOOD[:cut])

    def test_a_header_beyond_the_limit_is_not_read(self):
        path = self.write("model.safetensors", struct.pack("<Q", 100_000_001) + b"{")
        os.truncate(path, 200_000_000)
        self.refused("header length 100000001", codes=(3,))

    def test_white_space_in_a_header_takes_little_memory(self):
        """Regression: a header with 100 MB of white space took 350 MB of memory."""
        end = b'"__metadata__": {"a": 1}}'
        # The file is written in parts, since the memory of this process when it starts the program counts towards the program's peak.
        with open(self.write("model.safetensors", b""), "wb") as file:
            file.write((1 + (70 << 20) + len(end)).to_bytes(8, "little") + b"{")
            for _ in range(70):
                file.write(b" " * (1 << 20))
            file.write(end)
        self.refused(r"__metadata__")

    def test_long_names_are_shortened_in_errors(self):
        """Regression: errors quoted names of any length."""
        name = "w" * 70_000
        self.bad("wwww", raw({name: {**ONE, "dtype": "F99"}}, bytes(4)))
        self.bad("wwww", raw({name: ONE, "v": ONE}, bytes(4)))
        self.bad("wwww", raw({name: ONE}, bytes(4)))

    def test_invalid_headers_are_refused(self):
        for text in (b" {}", b"[]", b"{", b'{"a', b'{"\xff":1}', b"{}x", b"{}{}", b"{}\n", b"{}\0", b'{"a\0":1}', b"[" * 100000,
                     b'{"a":' * 100000, b'{"a":1e400}', b'{"a":NaN}', b'{"\\ud800":1}'):
            self.bad(r"model\.safetensors: .*(byte|begin)", struct.pack("<Q", len(text)) + text)

    def test_invalid_entries_are_refused(self):
        for name, entry in {
                "no object": 1, "nothing": {}, "no dtype": {"shape": [1], "data_offsets": [0, 4]}, "dtype 32": {**ONE, "dtype": 32},
                "unknown dtype": {**ONE, "dtype": "F99"}, "lower case": {**ONE, "dtype": "f32"}, "unknown key": {**ONE, "x": 1},
                "nested shape": {**ONE, "shape": [[1]]}, "negative size": {**ONE, "shape": [-1]}, "fraction": {**ONE, "shape": [1.5]},
                "size beyond 64 bits": {**ONE, "shape": [1 << 64]}, "overflow": {**ONE, "shape": [4194305, 4194305, 211106198978564]},
                "square overflow": {**ONE, "shape": [1 << 32, 1 << 32]}, "rank": {**ONE, "shape": [1] * 65},
                "backwards": {**ONE, "data_offsets": [4, 0]}, "negative offset": {**ONE, "data_offsets": [-4, 0]},
                "float offset": {**ONE, "data_offsets": [0, 4.0]}, "text offset": {**ONE, "data_offsets": [0, "4"]},
                "one offset": {**ONE, "data_offsets": [0]}, "beyond": {**ONE, "data_offsets": [0, 1 << 53]},
                "size and shape": {**ONE, "shape": [2]}}.items():
            with self.subTest(name):
                self.bad(r"model\.safetensors: .*w", raw({"w": entry}, bytes(4)))

    def test_metadata_is_checked(self):
        for value in (1, [], "x", None, {"a": 1}, {"a": None}, {"a": {}}):
            self.bad("__metadata__", raw({"__metadata__": value, **entries(SHAPES)}, GOOD[-4 * 376:]))

    def test_gaps_and_overlaps_are_refused(self):
        two = {"dtype": "F32", "shape": [1], "data_offsets": [4, 8]}
        self.bad("", raw({"v": ONE, "w": ONE}, bytes(4)))
        self.bad("", raw({"v": ONE, "w": {**two, "data_offsets": [8, 12]}}, bytes(12)))
        self.bad("", raw({"w": two}, bytes(8)))
        self.bad("", raw({"w": ONE}, bytes(8)))
        self.bad("", raw({"w": ONE}, bytes(3)))

    def test_duplicates_are_refused(self):
        entry = b'{"dtype":"F32","shape":[1],"data_offsets":[0,4]}'
        self.bad("duplicate", raw(b'{"w":' + entry + b',"w":' + entry + b"}", bytes(4)))
        self.bad("duplicate", raw(b'{"w":{"dtype":"F32","dtype":"F32","shape":[1],"data_offsets":[0,4]}}', bytes(4)))

    def test_unexpected_tensors_are_listed(self):
        several = {f"extra.{i}": [1] for i in range(9)}
        self.bad(r"9 unknown: extra\.0.*and 4 more", weights({**SHAPES, **several}))
        self.bad(r"1 missing: model\.norm\.weight", weights({k: v for k, v in SHAPES.items() if k != "model.norm.weight"}))
        self.bad(r"1 misshapen: model\.norm\.weight is \[9\], expected \[8\]", weights({**SHAPES, "model.norm.weight": [9]}))
        self.bad("12 missing", raw({}))
        for dtype, size in {"F64": 8, "I32": 4, "U8": 1, "BOOL": 1, "F8_E4M3": 1, "U16": 2}.items():
            header = {"model.norm.weight": {"dtype": dtype, "shape": [8], "data_offsets": [0, 8 * size]}}
            self.write("model.safetensors", raw(header, bytes(8 * size)))
            self.refused("")

    def test_many_tensors_are_read_quickly(self):
        self.bad("100000 unknown|12 missing", weights({f"w.{i}": [0] for i in range(100_000)}))

    def test_non_finite_weights_are_reported(self):
        self.write("model.safetensors", weights(SHAPES, float("nan")))
        self.assertIn("not finite", self.accepted())
        self.refused("not finite.*--strict", "trace", self.model, "--ids", "1,2", "--strict", "--out", self.folder / "out.safetensors", codes=(2,))
        text = self.folder / "text.txt"
        text.write_text("a b c d e f g " * 100)
        self.refused("not finite.*--strict", "train", text, "--from", self.model, "--strict", "--out", self.folder / "run", codes=(2,))
        pairs = self.folder / "pairs.tsv"
        pairs.write_text("a b\tc d\ne f\tg a\n")
        self.refused("not finite.*--strict", "embed", self.model, "--train", pairs, "--strict", "--out", self.folder / "run", codes=(2,))

    def test_pickles_are_refused(self):
        for name in ("pytorch_model.bin", "model.pt", "model.pth", "model.pkl", "model.ckpt", "tf_model.h5"):
            with self.subTest(name):
                (self.model / "model.safetensors").unlink(missing_ok=True)
                path = self.write(name, b"\x80\x02}q\x00." * 10)
                self.refused("safetensors|pickle")
                self.refused("pickle", "trace", path, "--ids", "1", "--out", self.folder / "out")
                path.unlink()


class HostileIndex(HostileTest):
    def index(self, shard, **more):
        (self.model / "model.safetensors").unlink(missing_ok=True)
        self.write("model.safetensors.index.json", {"metadata": {"total_size": 1}, "weight_map": {**{name: shard for name in SHAPES}, **more}})

    def test_names_of_shards_are_checked(self):
        self.write("good.safetensors", GOOD)
        outside = self.folder / "outside.safetensors"
        outside.write_bytes(GOOD)
        (self.model / "folder.safetensors").mkdir()
        os.mkfifo(self.model / "pipe.safetensors")
        self.index("good.safetensors")
        self.accepted()
        for shard in ("../outside.safetensors", str(outside), "a/../../outside.safetensors", "./good.safetensors", "", ".", "..", "/etc/passwd",
                      "/dev/zero", "folder.safetensors", "pipe.safetensors", "none.safetensors", "good.safetensors\0",
                      "x" * 5000, 5, None, ["good.safetensors"]):
            with self.subTest(shard):
                self.index(shard)
                self.refused("")

    def test_index_and_shards_must_agree(self):
        self.write("good.safetensors", GOOD)
        self.index("good.safetensors", extra="good.safetensors")
        self.refused("extra")
        self.write("more.safetensors", weights({"more": [1]}))
        self.index("good.safetensors", **{"model.norm.weight": "more.safetensors"})
        self.refused("")
        self.write("good.safetensors", weights({**SHAPES, "more": [1]}))
        self.index("good.safetensors")
        self.refused("more")

    def test_invalid_indexes_are_refused(self):
        self.index("good.safetensors")
        for text in (b"", b"{", b"[]", b"\xff", b"[" * 100000, b'{"a":' * 100000, b'{"weight_map": 5}', b'{"weight_map": []}', b"{}",
                     b'{"weight_map": {"a": "b", "a": "c"}}'):
            with self.subTest(text[:40]):
                self.write("model.safetensors.index.json", text)
                self.refused(r"index\.json")


if __name__ == "__main__":
    unittest.main()
