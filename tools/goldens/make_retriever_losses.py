#!/usr/bin/env python3
"""Writes tests/goldens/retriever_losses: examples, and for each loss of sparse encoders, late interaction models and cross-encoders its value
and the length of its gradient, by sentence-transformers; the divergence of scaled scores by the definition of PyLate's Distillation.

Needs torch, transformers, sentence-transformers (made with 6.2) and safetensors, and tests/goldens/sparse_model, multi_vector_model and
cross_encoder, whose losses these are."""
import shutil

import harness
from harness import GOLDENS
import torch
from sentence_transformers import CrossEncoder, MultiVectorEncoder, SparseEncoder
from sentence_transformers.cross_encoder import losses as of_pairs
from sentence_transformers.multi_vector_encoder import losses as of_tokens
from sentence_transformers.sparse_encoder import losses as of_vectors

FOLDER = GOLDENS / "retriever_losses"
NOUNS = ["fox", "eye", "light", "bird", "night", "day"]
QUERIES = [f"the {noun}" for noun in NOUNS]
POSITIVES = [f"{noun} sees a {other} ?" for noun, other in zip(NOUNS, NOUNS[1:] + NOUNS[:1])]
NEGATIVES = [[f"never {NOUNS[(i + step) % 6]} on {noun}" for i, noun in enumerate(NOUNS)] for step in (2, 3, 4)]
TEACHER = [[2.5, 0.5, -1.0, 0.25], [1.0, 1.5, -2.0, 0.0], [3.0, -3.0, 0.5, 1.0], [0.0, 0.25, -0.5, -4.0], [1.0, 0.0, 0.0, -1.0], [2.0, 1.9, 1.0, -2.5]]
GRADES = [[3.0, 0.0, 1.0, 2.0], [0.0, 1.0, 1.0, 0.0], [2.0, 2.0, 2.0, 2.0], [1.0, 0.0, 0.0, 0.0], [0.0, 3.0, 1.0, 0.0], [1.0, 2.0, 3.0, 0.0]]
MARGINS = [[1.5], [-0.25], [0.75], [0.0], [2.0], [0.5]]
NAMES = ["query", "positive", "negative_1", "negative_2", "negative_3"]
COLUMNS = {"pairs": ([QUERIES, POSITIVES], None), "triplets": ([QUERIES, POSITIVES, NEGATIVES[0]], MARGINS),
           "tuples": ([QUERIES, POSITIVES, *NEGATIVES], TEACHER), "graded": ([QUERIES, POSITIVES, *NEGATIVES], GRADES),
           "few": ([QUERIES[:3], POSITIVES[:3], NEGATIVES[0][:3]], None)}


class AbsoluteSum(torch.nn.Module):
    """The L1 norm, as a regulariser of SpladeLoss."""

    def compute_loss_from_embeddings(self, vectors):
        return vectors.abs().sum(1).mean()


class ScaledDivergence(of_tokens.MultiVectorDistillKLDivLoss):
    """PyLate's Distillation: the scores of a query are scaled to the unit interval before the softmax."""

    def __init__(self, model):
        super().__init__(model)
        scores_of = self.similarity_fct
        def scaled(*args, **options):
            scores = scores_of(*args, **options)
            least, most = scores.min(1, keepdim=True).values, scores.max(1, keepdim=True).values
            return (scores - least) / (most - least + 1e-8)
        self.similarity_fct = scaled


class AllScores(torch.nn.Module):
    """MSELoss for all pairs of a query and a candidate."""

    def __init__(self, model):
        super().__init__()
        self.loss = of_pairs.MSELoss(model)

    def forward(self, inputs, labels):
        queries, *candidates = inputs
        return self.loss([queries * len(candidates), sum(candidates, [])], labels.T.reshape(-1))


class Lists(torch.nn.Module):
    """A loss of lists, for columns of candidates."""

    def __init__(self, loss):
        super().__init__()
        self.loss = loss

    def forward(self, inputs, labels):
        queries, *candidates = inputs
        return self.loss([queries, [list(row) for row in zip(*candidates)]], list(labels))


def splade(model, loss, **weights):
    return of_vectors.SpladeLoss(model, loss, weights.pop("document_weight", 0.0), weights.pop("query_weight", None), **weights)


def sparse_cases(model):
    ranking = of_vectors.SparseMultipleNegativesRankingLoss(model)
    weights = {"query_weight": 0.3, "document_weight": 0.2}
    yield "pairs", {"loss": "ranking", **weights}, splade(model, ranking, **weights)
    norms = {"document_regularizer": AbsoluteSum(), "query_regularizer": AbsoluteSum()}
    yield "tuples", {"loss": "ranking", "regulariser": "l1", **weights}, splade(model, ranking, **weights, **norms)
    yield "tuples", {"loss": "ranking", "temperature": 2}, splade(model, of_vectors.SparseMultipleNegativesRankingLoss(model, scale=0.5))
    yield "triplets", {"loss": "margin_mse", **weights}, splade(model, of_vectors.SparseMarginMSELoss(model), **weights)
    yield "tuples", {"loss": "margin_mse"}, splade(model, of_vectors.SparseMarginMSELoss(model))
    yield "tuples", {"loss": "kl"}, splade(model, of_vectors.SparseDistillKLDivLoss(model, temperature=1.0))
    yield "tuples", {"loss": "kl", "temperature": 2.5, **weights}, splade(model, of_vectors.SparseDistillKLDivLoss(model, temperature=2.5), **weights)


def token_cases(model):
    yield "pairs", {"loss": "ranking"}, of_tokens.MultiVectorMultipleNegativesRankingLoss(model)
    yield "tuples", {"loss": "ranking", "temperature": 0.5}, of_tokens.MultiVectorMultipleNegativesRankingLoss(model, scale=2)
    yield "triplets", {"loss": "margin_mse"}, of_tokens.MultiVectorMarginMSELoss(model)
    yield "tuples", {"loss": "margin_mse"}, of_tokens.MultiVectorMarginMSELoss(model)
    yield "tuples", {"loss": "kl"}, of_tokens.MultiVectorDistillKLDivLoss(model)
    yield "tuples", {"loss": "kl", "temperature": 2.5}, of_tokens.MultiVectorDistillKLDivLoss(model, temperature=2.5)
    yield "tuples", {"loss": "scaled_kl"}, ScaledDivergence(model)


def pair_cases(model):
    yield "few", {"loss": "ranking"}, of_pairs.MultipleNegativesRankingLoss(model)
    yield "few", {"loss": "ranking", "temperature": 0.5}, of_pairs.MultipleNegativesRankingLoss(model, scale=2)
    yield "triplets", {"loss": "margin_mse"}, of_pairs.MarginMSELoss(model)
    yield "tuples", {"loss": "margin_mse"}, of_pairs.MarginMSELoss(model)
    yield "tuples", {"loss": "mse"}, AllScores(model)
    yield "tuples", {"loss": "list_net"}, Lists(of_pairs.ListNetLoss(model))
    yield "graded", {"loss": "list_net"}, Lists(of_pairs.ListNetLoss(model))
    yield "tuples", {"loss": "lambda"}, Lists(of_pairs.LambdaLoss(model))
    yield "graded", {"loss": "lambda"}, Lists(of_pairs.LambdaLoss(model))


def features_of(kind, model, columns):
    if kind == "scores":
        return columns
    roles = ["query"] + ["document"] * (len(columns) - 1)
    features = []
    for column, role in zip(columns, roles):
        prompt = model.prompts.get(role) or None
        features.append({**model.preprocess(column, prompt=prompt, task=role), "task": role})
    return features


def measured(kind, model, file, loss):
    columns, labels = COLUMNS[file]
    model.zero_grad()
    value = loss(features_of(kind, model, columns), None if labels is None else torch.tensor(labels))
    value = sum(value.values()) if isinstance(value, dict) else value
    value.backward()
    squares = sum(float(parameter.grad.double().square().sum()) for parameter in model.parameters() if parameter.grad is not None)
    return {"value": float(value.detach()), "gradient": squares ** 0.5}


def main():
    harness.quiet()
    harness.one_thread()
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir()
    for file, (columns, labels) in COLUMNS.items():
        rows = [dict(zip(NAMES, row)) for row in zip(*columns)]
        harness.write_records(FOLDER / f"{file}.jsonl", [{**row, **({"scores": labels[i]} if labels else {})} for i, row in enumerate(rows)])
    sparse = SparseEncoder(str(GOLDENS / "sparse_model"), device="cpu")
    models = {"sparse": (sparse, sparse_cases),
              "tokens": (MultiVectorEncoder(str(GOLDENS / "multi_vector_model"), device="cpu"), token_cases),
              "scores": (CrossEncoder(str(GOLDENS / "cross_encoder"), max_length=12, device="cpu"), pair_cases)}
    for model, _ in models.values():
        model.eval()
    sparse[1].train()  # otherwise the pooling works in place and has no gradient
    harness.write_lines(FOLDER / "expected.json", [{"kind": kind, "file": f"{file}.jsonl", **options, **measured(kind, model, file, loss)}
                                                   for kind, (model, cases) in models.items() for file, options, loss in cases(model)])
    harness.report(FOLDER)


if __name__ == "__main__":
    main()
