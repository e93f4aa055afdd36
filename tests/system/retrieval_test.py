"""Sparse vectors and vectors of tokens: fovea embed, rerank and serve with sparse encoders and late interaction models."""
import json
import shutil
import struct
import unittest

from embed_test import LINES, TEXTS, expected
from serving import ServeTest
from support import ROOT, FoveaTest, fovea

SPARSE, ROUTER = ROOT / "tests/goldens/sparse_model", ROOT / "tests/goldens/sparse_router"
MULTI, PYLATE = ROOT / "tests/goldens/multi_vector_model", ROOT / "tests/goldens/pylate_model"


def arrays_of(path):
    """Returns the tensors of a safetensors file as flat tuples."""
    content = path.read_bytes()
    length = struct.unpack("<Q", content[:8])[0]
    found = {}
    for name, entry in json.loads(content[8:8 + length]).items():
        if name != "__metadata__":
            begin, end = (8 + length + offset for offset in entry["data_offsets"])
            kind, size = {"I64": ("q", 8), "I32": ("i", 4), "F32": ("f", 4)}[entry["dtype"]]
            found[name] = struct.unpack(f"<{(end - begin) // size}{kind}", content[begin:end])
    return found


def dense(pairs, width=25):
    row = [0.0] * width
    for index, value in pairs:
        row[index] = value
    return row


class Retrieval(FoveaTest):
    def close(self, found, wanted, within=1e-5):
        self.assertEqual(len(found), len(wanted))
        for row, other in zip(found, wanted):
            self.assertEqual(len(row), len(other))
            for a, b in zip(row, other):
                self.assertAlmostEqual(a, b, delta=within)

    def embed(self, model, *arguments, text=LINES):
        return self.ok(fovea("embed", model, *arguments, input=text)).stdout

    def test_sparse_formats_agree_with_the_reference(self):
        wanted = expected("vectors", SPARSE)
        rows = [[pair.split(":") for pair in line.split()] for line in self.embed(SPARSE).decode().split("\n")[:-1]]
        self.close([dense([(int(i), float(x)) for i, x in row]) for row in rows], wanted)
        objects = [json.loads(line) for line in self.embed(SPARSE, "--json").splitlines()]
        self.close([dense(zip(o["indices"], o["values"])) for o in objects], wanted)
        self.assertEqual((objects[0]["index"], objects[0]["tokens"]), (0, 7))
        weights = objects[0]["weights"]
        self.assertEqual(sorted(weights.values()), sorted(objects[0]["values"]))
        self.assertEqual(list(weights.values()), sorted(weights.values(), reverse=True))
        out = self.folder / "vectors.safetensors"
        self.embed(SPARSE, "--out", out)
        arrays = arrays_of(out)
        starts, indices, values = (arrays[name] for name in ("starts", "indices", "values"))
        self.close([dense(zip(indices[a:b], values[a:b])) for a, b in zip(starts, starts[1:])], wanted)

    def test_sparse_vectors_of_queries_and_the_largest_elements(self):
        rows = [json.loads(line) for line in self.embed(SPARSE, "--json", "--task", "query").splitlines()]
        self.close([dense(zip(o["indices"], o["values"])) for o in rows], expected("query", SPARSE))
        rows = [json.loads(line) for line in self.embed(SPARSE, "--json", "--top", "3").splitlines()]
        self.close([dense(zip(o["indices"], o["values"])) for o in rows], expected("top", SPARSE))
        rows = [json.loads(line) for line in self.embed(ROUTER, "--json", "--task", "query").splitlines()]
        self.close([dense(zip(o["indices"], o["values"])) for o in rows], expected("queries", ROUTER))

    def test_a_masked_language_model_gives_sparse_vectors(self):
        plain = self.folder / "plain"
        shutil.copytree(SPARSE, plain)
        (plain / "modules.json").unlink()
        self.assertEqual(self.embed(plain, "--sparse"), self.embed(SPARSE))
        self.assertEqual(len(self.embed(plain).split(b"\n")[0].split()), 16, "one dense vector without the option")

    def test_a_line_has_the_same_bits_in_any_batch(self):
        for model in (SPARSE, MULTI):
            whole = self.embed(model)
            self.assertEqual(b"".join(self.embed(model, text=text.encode() + b"\n") for text in TEXTS), whole)
            self.assertEqual(self.embed(model, "--batch-tokens", "1"), whole)
            self.assertEqual(self.embed(model, "--threads", "1"), whole)
            self.assertEqual(self.embed(model, text=LINES * 300), whole * 300)
            self.assertEqual(self.embed(model, text=b""), b"")

    def test_vectors_of_tokens_agree_with_the_reference(self):
        for model in (MULTI, PYLATE):
            for task, name in (("document", "documents"), ("query", "queries")):
                wanted = expected(name, model)
                objects = [json.loads(line) for line in self.embed(model, "--task", task, "--json").splitlines()]
                self.close([row for o in objects for row in o["embedding"]], wanted)
                self.assertEqual([len(o["embedding"]) for o in objects], [int(x[0]) for x in expected(name + ".counts", model)])
                texts = self.embed(model, "--task", task).decode().split("\n\n")[:-1]
                self.assertEqual(len(texts), len(TEXTS))
                self.close([list(map(float, line.split())) for text in texts for line in text.split("\n")], wanted)
        out = self.folder / "vectors.safetensors"
        self.embed(MULTI, "--out", out)
        arrays = arrays_of(out)
        self.assertEqual(len(arrays["values"]), arrays["starts"][-1] * 8)

    def test_one_model_computes_three_kinds_of_vectors(self):
        model, copy = ROOT / "tests/goldens/bge_m3", self.folder / "copy"
        self.ok(fovea("convert", model, copy))
        lines = "".join(text + "\n" for text in json.loads((model / "texts.json").read_text())).encode()
        for folder in (model, copy):
            self.close([list(map(float, line.split())) for line in self.embed(folder, text=lines).decode().splitlines()], expected("dense", model))
            self.assertEqual(self.embed(folder, "--kind", "dense", text=lines), self.embed(folder, text=lines))
            rows = [json.loads(line) for line in self.embed(folder, "--kind", "sparse", "--json", text=lines).splitlines()]
            self.close([dense(zip(o["indices"], o["values"]), 19) for o in rows], expected("sparse", model))
            rows = [json.loads(line) for line in self.embed(folder, "--kind", "tokens", "--json", text=lines).splitlines()]
            self.close([row for o in rows for row in o["embedding"]], expected("tokens", model))
        self.refused(fovea("embed", model, "--kind", "scores", input=b"x"), 2, "--kind: scores requires --train")
        self.refused(fovea("embed", model, "--kind", "sparse", "--sparse", input=b"x"), 2, "--sparse: cannot be combined with --kind")
        self.refused(fovea("embed", model, "--kind", "tokens", "--explain", "x", input=b"x"), 2, "--kind: cannot be combined with --explain")

    def test_a_late_interaction_model_ranks_lines(self):
        scores = [row[0] for row in expected("scores", MULTI)]
        found = json.loads(self.ok(fovea("rerank", MULTI, "--query", TEXTS[0], "--json", input=LINES)).stdout)["results"]
        self.assertEqual([r["index"] for r in found], sorted(range(len(TEXTS)), key=lambda i: -scores[i]))
        for result in found:
            self.assertAlmostEqual(result["score"], scores[result["index"]], delta=1e-4)

    def test_invalid_requests_are_refused(self):
        self.refused(fovea("embed", SPARSE, "--dimensions", "4", input=b"x"), 2, "--dimensions", "dense")
        self.refused(fovea("embed", SPARSE, "--evaluate", "x.csv", input=b"x"), 2, "--evaluate")
        self.refused(fovea("embed", SPARSE, "--out", self.folder / "x.npy", input=b"x"), 2, "npy", "safetensors")
        self.refused(fovea("embed", SPARSE, "--format", "safetensors", input=b"x"), 2, "--out")
        self.refused(fovea("embed", MULTI, "--top", "3", input=b"x"), 2, "--top")
        self.refused(fovea("embed", MULTI, "--sparse", input=b"x"), 2, "--sparse")
        self.refused(fovea("embed", ROOT / "tests/goldens/sentence_model", "--top", "3", input=b"x"), 2, "--top", "--sparse")
        self.refused(fovea("embed", ROOT / "tests/goldens/cross_encoder", "--sparse", input=b"x"), 2, "SpladePooling")
        self.refused(fovea("embed", SPARSE, "--no-truncate", input=LINES), 2, "standard input: line 6", "12")
        self.refused(fovea("rerank", SPARSE, "--query", "x", input=b"x"), 2, "not a sequence classifier")

    def test_hostile_files_give_one_line(self):
        for model, file, changes in (
                (SPARSE, "1_SpladePooling/config.json", [b"", b"[]", b"{", b'{"pooling_strategy": {}}', b'{"activation_function": 1e400}']),
                (SPARSE, "modules.json", [b"[]", b"{}", b'[{"type": 1}]', b'[{"type": "x.Transformer", "path": "../x"}]']),
                (ROUTER, "router_config.json", [b"", b"[]", b'{"types": {}, "structure": {"query": 1}}', b'{"types": {}, "structure": {"query": [[]]}}',
                                                b'{"types": {"a": 1}, "structure": {"query": ["a"]}}', b'{"types": {}, "structure": {}}']),
                (ROUTER, "query_0_SparseStaticEmbedding/model.safetensors", [b"", b"\xff" * 100]),
                (MULTI, "2_MultiVectorMask/config.json", [b"", b"1", b'{"skiplist_words": {"a": 1}}', b'{"skiplist_tasks": 7}']),
                (MULTI, "sentence_bert_config.json", [b"[]", b'{"query_expansion": []}', b'{"query_expansion": {"strategy": "fixed", "length": 1e99}}']),
                (PYLATE, "config_sentence_transformers.json", [b'{"model_type": "ColBERT", "query_prefix": 1}', b'{"model_type": "ColBERT", "query_length": -1}'])):
            for change in changes:
                folder = self.folder / "hostile"
                shutil.rmtree(folder, ignore_errors=True)
                shutil.copytree(model, folder)
                (folder / file).write_bytes(change)
                with self.subTest(file=file, change=change):
                    self.refused(fovea("embed", folder, input=b"the fox\n"), 2, "hostile")


class ServeRetrieval(ServeTest):
    def test_sparse_vectors_equal_those_of_the_command(self):
        self.serve(SPARSE)
        found = self.good("/embed_sparse", {"inputs": TEXTS[:4]})
        run = self.ok(fovea("embed", SPARSE, "--json", input=LINES))
        wanted = [json.loads(line) for line in run.stdout.splitlines()][:4]
        for row, other in zip(found, wanted):
            self.assertEqual([(e["index"], e["value"]) for e in row], list(zip(other["indices"], other["values"])))
        query = self.good("/embed_sparse", {"inputs": "the fox", "prompt_name": "query"})
        self.assertNotEqual(query, self.good("/embed_sparse", {"inputs": "the fox"}))
        status, _, answer = self.post("/embed_sparse", {"inputs": "fox", "prompt_name": "none"})
        self.assertEqual((status, answer["error_type"]), (422, "Validation"))
        status, _, answer = self.post("/embed", {"inputs": "fox"})
        self.assertEqual((status, answer["error_type"]), (424, "Backend"))
        status, _, answer = self.post("/embed_sparse", {"inputs": "the fox " * 30, "truncate": False})
        self.assertEqual(status, 422, answer)

    def test_vectors_of_tokens_and_ranks_equal_those_of_the_commands(self):
        self.serve(MULTI)
        found = self.good("/embed_all", {"inputs": TEXTS[:4]})
        run = self.ok(fovea("embed", MULTI, "--json", input=LINES))
        self.assertEqual(found, [json.loads(line)["embedding"] for line in run.stdout.splitlines()][:4])
        ranks = self.good("/rerank", {"query": TEXTS[0], "texts": TEXTS[:4]})
        run = self.ok(fovea("rerank", MULTI, "--query", TEXTS[0], "--json", input="".join(t + "\n" for t in TEXTS[:4]).encode()))
        wanted = json.loads(run.stdout)["results"]
        self.assertEqual([(r["index"], r["score"]) for r in ranks], [(r["index"], r["score"]) for r in wanted])
        results = self.good("/v1/rerank", {"query": TEXTS[0], "documents": TEXTS[:4]})["results"]
        self.assertEqual([(r["index"], r["relevance_score"]) for r in results], [(r["index"], r["score"]) for r in wanted])
        data = self.good("/score", {"text_1": [TEXTS[0], TEXTS[1]], "text_2": [TEXTS[2], TEXTS[3]]})["data"]
        self.assertEqual(data[0]["score"], next(r["score"] for r in wanted if r["index"] == 2))
        status, _, answer = self.post("/embed_sparse", {"inputs": "fox"})
        self.assertEqual((status, answer["error_type"]), (424, "Backend"))


if __name__ == "__main__":
    unittest.main()
