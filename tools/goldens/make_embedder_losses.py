#!/usr/bin/env python3
"""Writes tests/goldens/embedder_losses: a tiny embedder, examples, and for each loss of sentence-transformers its value and the length of its
gradient; and hard negatives found by its mine_hard_negatives().

Needs torch, transformers, sentence-transformers (made with 6.2), datasets and safetensors, and tests/goldens/sentence_model, the guide of GISTEmbed
and the model that mines, and cross_encoder, which scores what it finds."""
import shutil

import harness
from harness import GOLDENS
import make_sentence_models as tiny
import torch
from datasets import Dataset
from sentence_transformers import CrossEncoder, SentenceTransformer
from sentence_transformers.sentence_transformer import losses
from sentence_transformers.sentence_transformer.modules.pooling import Pooling
from sentence_transformers.util import mine_hard_negatives
from transformers import BertConfig, BertModel

FOLDER = GOLDENS / "embedder_losses"
NOUNS = ["fox", "eye", "light", "bird", "night", "day"]
ANCHORS = [f"the {noun}" for noun in NOUNS]
POSITIVES = [f"{noun} sees a {other} ?" for noun, other in zip(NOUNS, NOUNS[1:] + NOUNS[:1])]
NEGATIVES = [[f"never {NOUNS[(i + step) % 6]} on {noun}" for i, noun in enumerate(NOUNS)] for step in (2, 3, 4)]
SCORES = [0.9, 0.1, 0.5, 0.5, 0.0, 1.0]
TEACHER = [[2.5, 0.5, -1.0, 0.25], [1.0, 1.5, -2.0, 0.0], [3.0, -3.0, 0.5, 1.0], [0.0, 0.25, -0.5, -4.0], [1.0, 0.0, 0.0, -1.0], [2.0, 1.9, 1.0, -2.5]]
MARGINS = [1.5, -0.25, 0.75, 0.0, 2.0, 0.5]
PAIRS = [ANCHORS, POSITIVES]
TRIPLETS, TUPLES = [*PAIRS, NEGATIVES[0]], [*PAIRS, *NEGATIVES]
NAMES = ["anchor", "positive", "negative_1", "negative_2", "negative_3"]


def records(columns, names, labels=None, name=None):
    rows = [dict(zip(names, row)) for row in zip(*columns)]
    return [{**row, **({} if labels is None else {name: label})} for row, label in zip(rows, labels or rows)]


def embedder():
    torch.manual_seed(3)
    plain = FOLDER / "plain"
    tiny.write_transformer(plain, BertModel(BertConfig(**tiny.SIZES)))
    model = SentenceTransformer(modules=[tiny.transformer(plain), Pooling(16, "mean")], device="cpu")
    model.save(str(FOLDER / "model"), create_model_card=False)
    shutil.rmtree(plain)
    harness.remove(FOLDER / "model", "README.md", "special_tokens_map.json", "vocab.txt")
    return model.eval()


def cases(model, guide):
    """Yields (file of examples, options of fovea, loss, columns, labels)."""
    ranking = losses.MultipleNegativesRankingLoss(model)
    yield "pairs", {"loss": "ranking"}, ranking, PAIRS, None
    yield "tuples", {"loss": "ranking", "temperature": 0.5}, losses.MultipleNegativesRankingLoss(model, scale=2), TUPLES, None
    yield "pairs", {"loss": "ranking", "dimensions": [4, 8]}, losses.MatryoshkaLoss(model, ranking, [16, 8, 4]), PAIRS, None
    yield "scored", {"loss": "cosine"}, losses.CosineSimilarityLoss(model), PAIRS, SCORES
    yield "scored", {"loss": "cosent"}, losses.CoSENTLoss(model), PAIRS, SCORES
    yield "scored", {"loss": "angle"}, losses.AnglELoss(model), PAIRS, SCORES
    yield "scored", {"loss": "angle", "dimensions": [5]}, losses.MatryoshkaLoss(model, losses.AnglELoss(model), [16, 5]), PAIRS, SCORES
    yield "tuples", {"loss": "angle", "temperature": 1}, losses.AnglELoss(model, scale=1), TUPLES, None
    yield "triplets", {"loss": "triplet"}, losses.TripletLoss(model), TRIPLETS, None
    yield "triplets", {"loss": "triplet", "margin": 0.25}, losses.TripletLoss(model, triplet_margin=0.25), TRIPLETS, None
    yield "triplets", {"loss": "margin_mse"}, losses.MarginMSELoss(model), TRIPLETS, MARGINS
    yield "tuples", {"loss": "margin_mse"}, losses.MarginMSELoss(model), TUPLES, TEACHER
    yield "tuples", {"loss": "kl"}, losses.DistillKLDivLoss(model), TUPLES, TEACHER
    yield "tuples", {"loss": "kl", "temperature": 2.5, "dimensions": [8]}, losses.MatryoshkaLoss(
        model, losses.DistillKLDivLoss(model, temperature=2.5), [16, 8]), TUPLES, TEACHER
    yield "pairs", {"loss": "gist"}, losses.GISTEmbedLoss(model, guide), PAIRS, None
    yield "triplets", {"loss": "gist", "temperature": 0.2, "margin": 0.002}, losses.GISTEmbedLoss(model, guide, 0.2, "absolute", 0.002), TRIPLETS, None
    yield "triplets", {"loss": "gist", "relative_margin": 0.001}, losses.GISTEmbedLoss(model, guide, margin_strategy="relative", margin=0.001), TRIPLETS, None


def measured(model, loss, columns, labels):
    model.zero_grad()
    features = [model.preprocess(column) for column in columns]
    value = loss(features, None if labels is None else torch.tensor(labels))
    value.backward()
    squares = sum(float(parameter.grad.double().square().sum()) for parameter in model.parameters() if parameter.grad is not None)
    return {"value": float(value), "gradient": squares ** 0.5}


def mined():
    """Yields the options of fovea and the rows found; the corpus has further texts."""
    model = SentenceTransformer(str(GOLDENS / "sentence_model"), device="cpu")
    judge = CrossEncoder(str(GOLDENS / "cross_encoder"), max_length=12, device="cpu")
    data = Dataset.from_dict({"anchor": [*ANCHORS, ANCHORS[1]], "positive": [*POSITIVES, "the day and the eye"]})
    corpus = [text for column in NEGATIVES for text in column]
    for options in ({"negatives": 2}, {"negatives": 3, "range_min": 2, "range_max": 8}, {"negatives": 2, "margin": 0.002},
                    {"negatives": 2, "relative_margin": 0.001, "max_score": 0.998}, {"negatives": 2, "max_score": 1, "rerank": True}):
        given = {{"negatives": "num_negatives", "margin": "absolute_margin"}.get(name, name): value for name, value in options.items() if name != "rerank"}
        found = mine_hard_negatives(data, model, corpus=corpus, cross_encoder=judge if "rerank" in options else None, output_format="n-tuple",
                                    output_scores=True, verbose=False, **given)
        yield {"options": options, "corpus": corpus, "rows": [dict(row) for row in found]}


def main():
    harness.quiet()
    harness.one_thread()
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir()
    model, guide = embedder(), SentenceTransformer(str(GOLDENS / "sentence_model"), device="cpu")
    harness.write_records(FOLDER / "pairs.jsonl", records(PAIRS, NAMES))
    harness.write_records(FOLDER / "scored.jsonl", records(PAIRS, ["sentence1", "sentence2"], SCORES, "score"))
    harness.write_records(FOLDER / "triplets.jsonl", records(TRIPLETS, ["query", "positive", "negative"], MARGINS, "margin"))
    harness.write_records(FOLDER / "tuples.jsonl", records(TUPLES, NAMES, TEACHER, "scores"))
    harness.write_lines(FOLDER / "expected.json", [{"file": f"{file}.jsonl", **options, **measured(model, *rest)}
                                                   for file, options, *rest in cases(model, guide)])
    harness.write_lines(FOLDER / "mined.json", list(mined()))
    harness.report(FOLDER)


if __name__ == "__main__":
    main()
