"""Text data at its real size: bounded memory, compressed files, mixtures, and `fovea dedup`."""
import gzip
import json
import shutil
import subprocess
import unittest

from memory_test import SANITIZED
from support import SMALL, FoveaTest, fovea, text_of

TINY = [*SMALL, "--steps", 3, "--sample-every", 0, "--evaluate-windows", 2, "--dtype", "fp32"]
ZSTD = shutil.which("zstd")


class TextData(FoveaTest):
    def trained(self, name, *data, **more):
        out = self.folder / name
        result = self.ok(fovea("train", *data, "--out", out, *TINY, "--json", **more))
        return json.loads(result.stdout), (out / "model.safetensors").read_bytes()

    @unittest.skipIf(SANITIZED, "sanitizers take memory")
    def test_the_memory_does_not_grow_with_the_text(self):
        text = text_of(1 << 20)
        large = self.file("large.txt", text * 40)
        small = self.file("small.txt", text)
        limit = ("--token-cache", "1M")
        few, _ = self.trained("few", small, "--tokenizer", "char", *limit)
        many, weights = self.trained("many", large, "--tokenizer", "char", *limit)
        self.assertEqual((self.folder / "many/tokens.bin").stat().st_size, 2 * (40 << 20) + 96)
        self.assertLess(many["peak_bytes"], few["peak_bytes"] + (12 << 20))
        self.assertLess(abs(many["planned_bytes"] / many["peak_bytes"] - 1), 0.5, many)
        held, weights_held = self.trained("held", large, "--tokenizer", "char", "--token-cache", "100M")
        self.assertEqual(weights_held, weights)
        self.assertGreater(held["peak_bytes"], many["peak_bytes"] + (60 << 20))  # 80 MB of ids
        plan = json.loads(self.ok(fovea("train", large, "--dry-run", *TINY, "--tokenizer", "char", *limit, "--json")).stdout)
        self.assertLess(plan["total_bytes"], few["planned_bytes"] + (12 << 20))

    def test_compressed_texts_give_the_bits_of_the_text(self):
        text = text_of(30000)
        _, plain = self.trained("plain", self.file("a.txt", text), "--tokenizer", "bpe:300")
        _, packed = self.trained("gzip", self.file("a.txt.gz", gzip.compress(text.encode())), "--tokenizer", "bpe:300")
        self.assertEqual(packed, plain)
        if ZSTD:
            subprocess.run([ZSTD, "-q", self.folder / "a.txt"], check=True)
            self.assertEqual(self.trained("zstd", self.folder / "a.txt.zst", "--tokenizer", "bpe:300")[1], plain)

    def test_damaged_files_are_refused_with_their_place(self):
        whole = gzip.compress(text_of(30000).encode())
        out = self.folder / "out"
        cut = self.file("cut.txt.gz", whole[:5000])
        self.refused(fovea("train", cut, "--out", out, *TINY), 2, "cut.txt.gz: ends within its compressed data (byte 5001); expected")
        damaged = bytearray(whole)
        damaged[-6] ^= 1
        self.refused(fovea("train", self.file("bad.txt.gz", bytes(damaged)), "--out", out, *TINY), 2,
                     "bad.txt.gz: its compressed data is damaged: incorrect data check (byte ")
        self.refused(fovea("train", f"{self.text}:0", "--out", out, *TINY), 2, "has the weight 0; expected more than 0")
        self.assertFalse(out.exists())

    def test_a_mixture_resumes_with_the_same_bits(self):
        other = self.file("other.txt", text_of(9000, 3).upper())
        out = self.folder / "out"
        command = ("train", f"{self.text}:0.5", f"{other}:2", "--out", out, *SMALL, "--steps", 6, "--save-every", 3)
        self.ok(fovea(*command))
        weights = (out / "model.safetensors").read_bytes()
        shutil.rmtree(out / "checkpoint-6")
        self.ok(fovea(*command))
        self.assertEqual((out / "model.safetensors").read_bytes(), weights)
        again = self.ok(fovea("train", "--out", out, "--steps", 7)).stderr.decode()
        self.assertIn(f"fovea eval '{out}' '{self.text}'\n", again)  # without the weight
        self.refused(fovea("train", f"{self.text}:0.5", f"{other}:3", *command[3:], "--steps", 7), 2, "data was")
        plan = json.loads(self.ok(fovea("train", f"{self.text}:0.5", f"{other}:2", *SMALL, "--steps", 6, "--dry-run", "--json")).stdout)
        self.assertEqual(plan["training_tokens"], 9000 + 2 * 8100)  # of 18,000 and, with the separator, of floor(0.9 * 9,001) tokens
        short = self.file("short.txt", "short")
        self.refused(fovea("train", f"{self.text}:0.5", short, "--out", self.folder / "new", *SMALL), 2, "short.txt: too short: ")

    def test_repeated_documents_are_left_out(self):
        documents = [" ".join(f"word{i * j % 997}" for j in range(100)) for i in range(1, 9)]
        documents += [documents[0] + "\n", documents[1] + " and more"]
        data = self.file("a.jsonl", "".join(json.dumps({"text": text}) + "\n" for text in documents))
        out = self.folder / "b.jsonl"
        said = self.ok(fovea("dedup", data, "--out", out)).stdout.decode()
        self.assertIn("left out:", said)
        self.assertEqual([json.loads(line)["text"] for line in out.read_text().splitlines()], documents[:8] + documents[9:])
        report = json.loads(self.ok(fovea("dedup", data, "--near", 0.8, "--out", out, "--json")).stdout)
        self.assertEqual([report[key]["number"] for key in ("read", "equal", "similar", "kept")], [10, 1, 1, 8])
        self.assertEqual(report["examples"][1]["kept"], f"{data}, document 2")
        self.assertEqual([json.loads(line)["text"] for line in out.read_text().splitlines()], documents[:8])
        self.ok(fovea("dedup", data, data, "--lines", "--out", out))
        self.assertEqual(len(out.read_text().splitlines()), 9)
        self.refused(fovea("dedup", data), 2, "--out: not given; expected the output file")
        self.refused(fovea("dedup", "--out", out), 2, "DATA: not given; expected text files")
        self.refused(fovea("dedup", data, "--out", data), 2, "--out: ", "is one of the files of the data")
        self.refused(fovea("dedup", data, "--lines", "--near", 0.8, "--out", out), 2, "--near: given with ")


if __name__ == "__main__":
    unittest.main()
