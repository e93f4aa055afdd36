"""Vectors, scores, labels and search: the same as from the command line."""

import json
import pickle
import unittest

import numpy as np
from support import GOLDENS, TestCase, program, text_model

import fovea

TEXTS = ["a small house", "two words", "It rains in the mountains."]


class Vectors(TestCase):
    def command_line(self, *arguments):
        out = self.folder() / "vectors.npy"
        lines = self.folder() / "lines.txt"
        lines.write_text("\n".join(TEXTS) + "\n", encoding="utf-8")
        program("embed", GOLDENS / "sentence_model", lines, "--out", out, *arguments)
        return np.load(out)

    def test_vectors_are_those_of_the_command_line(self):
        encoder = fovea.Encoder(GOLDENS / "sentence_model")
        np.testing.assert_array_equal(encoder.encode(TEXTS), self.command_line())
        for size in (1, 2):
            np.testing.assert_array_equal(encoder.encode(TEXTS, batch_size=size), self.command_line())
        np.testing.assert_array_equal(encoder.encode(TEXTS[0]), self.command_line()[0])

    def test_a_prompt_changes_the_vectors(self):
        encoder = fovea.Encoder(GOLDENS / "sentence_model")
        np.testing.assert_array_equal(encoder.encode(TEXTS, prompt_name="query"), self.command_line("--prompt-name", "query"))
        np.testing.assert_array_equal(encoder.encode_query(TEXTS), encoder.encode(TEXTS, prompt_name="query"))

    def test_similarities(self):
        encoder = fovea.Encoder(GOLDENS / "sentence_model")
        vectors = encoder.encode(TEXTS)
        unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
        np.testing.assert_allclose(encoder.similarity(vectors, vectors[:2]), unit @ unit[:2].T, atol=1e-5)
        np.testing.assert_allclose(np.linalg.norm(encoder.encode(TEXTS, normalize=True), axis=1), 1, atol=1e-6)

    def test_encoders_can_be_pickled(self):
        encoder = fovea.Encoder(GOLDENS / "sentence_model")
        again = pickle.loads(pickle.dumps(encoder))
        np.testing.assert_array_equal(again.encode(TEXTS), encoder.encode(TEXTS))

    def test_a_reranker_scores_texts(self):
        reranker = fovea.Reranker(str(GOLDENS / "cross_encoder"))
        scores = reranker.score("a house", TEXTS)
        self.assertEqual(scores.shape, (3,))
        np.testing.assert_array_equal(scores[1:], reranker.score("a house", TEXTS[1:]))

    def test_sparse_vectors_and_vectors_of_tokens(self):
        sparse = fovea.SparseEncoder(str(GOLDENS / "sparse_model")).encode(TEXTS)
        self.assertEqual((len(sparse), len(sparse.starts)), (3, 4))
        self.assertEqual(len(sparse.indices), len(sparse.values))
        many = fovea.MultiVectorEncoder(str(GOLDENS / "multi_vector_model"))
        rows = many.encode(TEXTS)
        self.assertEqual(rows[0].shape[1], many.width)
        np.testing.assert_allclose(np.linalg.norm(rows[0], axis=1), 1, atol=1e-5)

    def test_data_sets_are_measured_as_by_the_command_line(self):
        folder = self.folder()
        rows = {"queries.jsonl": {"q": TEXTS[0]}, "corpus.jsonl": {f"d{i}": text for i, text in enumerate(TEXTS)}}
        for name, texts in rows.items():
            (folder / name).write_text("".join(json.dumps({"_id": key, "text": text}) + "\n" for key, text in texts.items()), encoding="utf-8")
        (folder / "qrels.tsv").write_text("query-id\tcorpus-id\tscore\nq\td0\t1\n", encoding="utf-8")
        files = [str(folder / name) for name in (*rows, "qrels.tsv")]
        encoder = fovea.Encoder(GOLDENS / "sentence_model")
        found = fovea.evaluate_retrieval(encoder, files=files, cutoffs=[1], bootstrap=100)
        printed = json.loads(program("eval", GOLDENS / "sentence_model", "--retrieval", *files, "--cutoffs", 1, "--bootstrap", 100, "--json"))
        self.assertEqual((found.queries, found.documents), (1, 3))
        self.assertEqual({name: metric.value for name, metric in found.metrics.items()}, {name: metric["value"] for name, metric in printed["metrics"].items()})
        reranker = fovea.Reranker(str(GOLDENS / "cross_encoder"))
        self.assertEqual(set(fovea.evaluate_retrieval(encoder, reranker=reranker, files=files, cutoffs=[1]).metrics), set(found.metrics))
        self.assertEqual(fovea.evaluate_retrieval(fovea.SparseEncoder(str(GOLDENS / "sparse_model")), files=files).documents, 3)
        pairs = folder / "pairs.tsv"
        pairs.write_text("sentence1\tsentence2\tlabel\na\ta\t1\na\tb\t0\n", encoding="utf-8")
        scores = fovea.evaluate_sentences(encoder, sentences=[str(pairs)]).scores
        self.assertEqual((scores[0].task, scores[0].records), ("pairs", 2))
        self.assertIn("average_precision", scores[0].metrics)

    def test_labels_entities_answers_and_masks(self):
        labels = fovea.load(GOLDENS / "classifiers/texts").classify(TEXTS)
        self.assertEqual(labels.scores.shape, (3, 3))
        np.testing.assert_allclose(labels.scores.sum(1), 1, atol=1e-5)
        self.assertEqual(labels[0][0][0], labels.best[0])
        self.assertIsInstance(fovea.load(GOLDENS / "classifiers/words").classify("Anna lives in Rome"), list)
        answers = fovea.load(GOLDENS / "classifiers/answers").classify(("Who lives here?", "Anna lives in Rome"))
        self.assertTrue(all(answer.text in "Anna lives in Rome" for answer in answers))
        masked = fovea.Classifier(str(GOLDENS / "classifiers/masks"))
        self.assertEqual(len(masked.fill_masks([f"It {masked.mask_token} here"], top=3)[0][0]), 3)

    def test_an_index_finds_passages(self):
        folder = self.folder()
        texts = folder / "texts"
        texts.mkdir()
        (texts / "a.txt").write_text("\n\n".join(TEXTS), encoding="utf-8")
        seen = []
        built = fovea.SearchIndex.build(
            str(texts), str(GOLDENS / "sentence_model"), str(folder / "index"), progress=lambda done, all: seen.append((done, all))
        )
        index = fovea.SearchIndex(str(folder / "index"))
        self.assertEqual(len(index), built.passages)
        self.assertTrue(seen)
        found = index.search("a small house", count=1, hybrid=True)
        self.assertEqual(found[0].file, "a.txt")
        (texts / "rows.jsonl").write_text('{"text": "a small house", "label": "house", "size": 3}\n')
        added = fovea.SearchIndex.add(str(folder / "index"), [str(texts / "rows.jsonl")])
        self.assertEqual((added.files, added.passages, added.duplicates), (1, 1, 0))
        found = fovea.SearchIndex(str(folder / "index")).search("a small house", where=["label=house"])
        self.assertEqual([(p.file, p.fields) for p in found], [("rows.jsonl", {"label": "house", "size": 3})])
        self.assertEqual(fovea.SearchIndex.delete(str(folder / "index"), ["rows.jsonl"]), 1)
        self.assertEqual(len(fovea.SearchIndex(str(folder / "index"))), built.passages)

    def test_images(self):
        image = next(path for path in (GOLDENS / "images").iterdir() if path.suffix == ".png")
        self.assertEqual(fovea.read_image(str(image)).shape[2], 3)
        np.testing.assert_array_equal(fovea.read_image(image.read_bytes()), fovea.read_image(str(image)))


class Tokenizers(TestCase):
    def test_ids_offsets_and_batches(self):
        tokenizer = fovea.Tokenizer(str(GOLDENS / "sentence_model"))
        encoding = tokenizer.encoding("two words")
        self.assertEqual(len(encoding), len(encoding.tokens))
        self.assertEqual(tokenizer.encode("two words"), encoding.ids[1:-1])
        bytes_of_text = fovea.load(text_model()).tokenizer
        self.assertEqual(bytes_of_text.decode(bytes_of_text.encode("The cat and the ü")), "The cat and the ü")
        batch = tokenizer.encode_batch(TEXTS, truncate_and_pad=False)
        self.assertEqual([each.ids for each in batch], [tokenizer.encoding(text, truncate_and_pad=False).ids for text in TEXTS])
        for (begin, end), special in zip(encoding.offsets, encoding.special_tokens_mask):
            self.assertEqual(begin == end == 0, bool(special))


if __name__ == "__main__":
    unittest.main()
