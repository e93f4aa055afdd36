"""fovea eval --retrieval and --sentences: vectors measured on data sets."""
import json
import math
import re
import unittest

from support import ROOT, FoveaTest, fovea

MODEL, CROSS_ENCODER = ROOT / "tests/goldens/sentence_model", ROOT / "tests/goldens/cross_encoder"
QUERIES = {"q1": "the fox", "q2": "night", "q3": "bird"}
DOCUMENTS = {"d1": "the fox sees the bird", "d2": "the fox sees the bird", "d3": "light falls on the eye", "d4": "night", "q3": "bird", "d5": "never"}
JUDGED = {"q1": {"d1": 2, "d3": 1, "d5": -1}, "q2": {"d4": 1, "gone": 1}, "q3": {"d5": 0}}


def lines(records):
    return "".join(json.dumps(record) + "\n" for record in records)


def ndcg(found, judged, k):
    """NDCG at k of a list of documents."""
    def gain(relevance):
        return sum(max(r, 0) / math.log2(i + 2) for i, r in enumerate(relevance[:k]))
    best = gain(sorted(judged.values(), reverse=True))
    return gain([judged.get(document, 0) for document in found]) / best if best else 0


class VectorEvaluation(FoveaTest):
    def data_set(self, judged=None):
        rows = [(query, document, score) for query, scores in JUDGED.items() for document, score in scores.items()]
        return [self.file("queries.jsonl", lines({"_id": key, "text": text} for key, text in [*QUERIES.items(), ("q9", "unjudged")])),
                self.file("corpus.jsonl", lines({"_id": key, "title": "", "text": text} for key, text in DOCUMENTS.items())),
                self.file("qrels.tsv", judged or "query-id\tcorpus-id\tscore\n" + "".join(f"{q}\t{d}\t{s}\n" for q, d, s in rows))]

    def retrieve(self, *more, model=MODEL):
        result = self.ok(fovea("eval", model, "--retrieval", *self.data_set(), "--cutoffs", "1,3", "--json", *more))
        return json.loads(result.stdout), result.stderr.decode()

    def run_lists(self, *more, **how):
        """Returns the result and the documents found for each query."""
        run = self.folder / "run.txt"
        found, _ = self.retrieve("--run-out", run, *more, **how)
        lists = {}
        for line in run.read_text().splitlines():
            query, _, document, rank, _, name = line.split()
            lists.setdefault(query, []).append(document)
            self.assertEqual((int(rank), name), (len(lists[query]), "fovea"))
        return found, lists

    def test_metrics_are_those_of_the_lists(self):
        for model in (MODEL, ROOT / "tests/goldens/sparse_model", ROOT / "tests/goldens/multi_vector_model"):
            found, lists = self.run_lists(model=model)
            self.assertEqual((found["objective"], found["queries"], found["documents"]), ("retrieval", 3, 6))
            self.assertEqual({query: len(documents) for query, documents in lists.items()}, {"q1": 6, "q2": 6, "q3": 5})
            for k in (1, 3):
                metric = found["metrics"][f"ndcg_at_{k}"]
                self.assertAlmostEqual(metric["value"], sum(ndcg(lists[query], JUDGED[query], k) for query in QUERIES) / 3, places=12)
                self.assertTrue(0 <= metric["low"] <= metric["value"] <= metric["high"] <= 1)
        self.assertEqual(set(found["metrics"]), {"map", *(f"{name}_at_{k}" for name in ("ndcg", "map", "recall", "precision", "mrr") for k in (1, 3))})

    def test_results_do_not_depend_on_threads(self):
        once, _ = self.run_lists()
        self.assertEqual(self.run_lists("--threads", "1")[0], once)
        self.assertEqual(self.run_lists("--threads", "3")[0], once)

    def test_notes_tell_what_is_left_out(self):
        _, notes = self.retrieve()
        self.assertIn("1 queries have no judgements", notes)
        self.assertIn("1 judgements are of documents that the corpus lacks", notes)

    def test_a_cross_encoder_sorts_the_documents(self):
        _, plain = self.run_lists("--depth", "4")
        _, sorted_ = self.run_lists("--depth", "4", "--rerank", CROSS_ENCODER)
        for query, documents in plain.items():
            self.assertEqual(set(sorted_[query]), set(documents))
            texts = "".join(DOCUMENTS[document] + "\n" for document in documents)
            ranked = json.loads(self.ok(fovea("rerank", CROSS_ENCODER, "--query", QUERIES[query], "--json", input=texts.encode())).stdout)["results"]
            self.assertEqual([DOCUMENTS[d] for d in sorted_[query]], [r["text"] for r in ranked])

    def test_the_table_has_a_column_for_each_cutoff(self):
        table = self.ok(fovea("eval", MODEL, "--retrieval", *self.data_set(), "--cutoffs", "1,3")).stdout.decode().splitlines()
        self.assertEqual(table[0].split(), ["queries", "3"])
        self.assertEqual(table[2].split(), ["at", "1", "at", "3", "all"])
        self.assertEqual([line.split()[0] for line in table[3:]], ["NDCG", "MAP", "recall", "precision", "MRR"])

    def test_sentences_are_measured_by_their_names(self):
        words = ["the fox", "light", "night", "the eye", "a bird sees", "it never falls"]
        rows = [(a, b, len(set(a + b))) for a in words for b in words]
        scored = self.file("scored.tsv", "sentence1\tsentence2\tscore\n" + "".join(f"{a}\t{b}\t{score}\n" for a, b, score in rows))
        topics = self.file("topics.jsonl", lines({"text": ["the fox sees the bird", "night"][i % 2], "label": ["animal", "time"][i % 2]} for i in range(20)))
        command = ("eval", MODEL, "--sentences", scored, topics)
        found = json.loads(self.ok(fovea(*command, "--json")).stdout)
        self.assertEqual([(each["task"], each["records"]) for each in found["scores"]], [("similarity", 36), ("clusters", 20), ("labels", 20)])
        self.assertEqual(found["scores"][1]["metrics"]["v_measure"], {"value": 1, "low": 1, "high": 1})
        sts = json.loads(self.ok(fovea("eval", MODEL, "--sts", scored, "--json")).stdout)
        self.assertAlmostEqual(100 * found["scores"][0]["metrics"]["spearman"]["value"], sts["spearman"], places=9)
        table = self.ok(fovea(*command)).stdout.decode().splitlines()
        self.assertEqual([re.split(r"\s{2,}", line)[1] for line in table], ["task", "similarity", "similarity", "clusters", "labels", "labels"])
        seeded = json.loads(self.ok(fovea(*command, "--json", "--bootstrap", "50", "--seed", "3")).stdout)["scores"][0]["metrics"]["pearson"]
        self.assertEqual(seeded["value"], found["scores"][0]["metrics"]["pearson"]["value"])
        self.assertNotEqual(seeded["low"], found["scores"][0]["metrics"]["pearson"]["low"])
        self.assertEqual(self.ok(fovea(*command, "--threads", "1")).stdout.decode().splitlines(), table)

    def test_invalid_requests_are_refused(self):
        queries, corpus, judgements = self.data_set()
        self.refused(fovea("eval", MODEL, "--retrieval", queries, corpus), 2, "--retrieval", "three")
        self.refused(fovea("eval", MODEL, "--retrieval", queries, corpus, judgements, "--cutoffs", "10", "--depth", "5"), 2, "--cutoffs", "--depth")
        self.refused(fovea("eval", MODEL, "--retrieval", queries, corpus, judgements, "--sts", judgements), 2, "--sts")
        self.refused(fovea("eval", MODEL, self.text, "--bootstrap", "50"), 2, "--bootstrap", "--retrieval")
        self.refused(fovea("eval", MODEL, "--sts", judgements, "--depth", "5"), 2, "--depth", "--retrieval")
        self.refused(fovea("eval", MODEL, "--retrieval", *self.data_set("query-id\tcorpus-id\tscore\nq1\td1\thigh\n")), 2, "qrels.tsv:2", "high")
        self.refused(fovea("eval", MODEL, "--sentences", self.file("x.tsv", "a\tb\n")), 2, "x.tsv", "sentence1")
        self.refused(fovea("eval", CROSS_ENCODER, "--retrieval", queries, corpus, judgements), 2, "cross_encoder")


if __name__ == "__main__":
    unittest.main()
