"""Losses and metrics of models on data."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from . import _fovea
from ._docs import documented
from .encoder import Encoder
from .model import Model

if TYPE_CHECKING:
    from typing import Unpack

    from ._hub import Path
    from ._options import (
        EvaluateOptions,
        EvaluateRetrievalOptions,
        EvaluateSentencesOptions,
        EvaluateTasksOptions,
        ProbeOptions,
    )


@documented("evaluate")
def evaluate(
    model: Model, *, beams: int | None = None, **data: Unpack[EvaluateOptions]
) -> _fovea.Evaluation:
    """Measures the loss and other metrics on files of texts, pairs or labelled texts.

    beams: also translate the sources of `pairs`, for BLEU, chrF and ROUGE-L.
    """
    return _fovea.evaluate(model._model, beams, **data)


def evaluate_images(model: _fovea.ImageModel, images: Path | Sequence[Path]) -> _fovea.Evaluation:
    """Measures a model on images with labels or captions."""
    folders = [images] if isinstance(images, (str, os.PathLike)) else images
    return _fovea.evaluate_images(model, [os.fspath(folder) for folder in folders])


@documented("evaluate_tasks")
def evaluate_tasks(model: Model, **data: Unpack[EvaluateTasksOptions]) -> _fovea.TaskEvaluation:
    """Evaluates a model on records, as lm-evaluation-harness does."""
    return _fovea.evaluate_tasks(model._model, **data)


def compare(model: Model, full: Model, data: Path | Sequence[Path]) -> _fovea.Comparison:
    """Compares the predictions of a model with those of a reference on text files."""
    files = [data] if isinstance(data, (str, os.PathLike)) else data
    return _fovea.compare(model._model, full._model, [os.fspath(file) for file in files])


@documented("evaluate_retrieval")
def evaluate_retrieval(
    model: Encoder | _fovea.SparseEncoder | _fovea.MultiVectorEncoder,
    *,
    reranker: _fovea.Reranker | None = None,
    **data: Unpack[EvaluateRetrievalOptions],
) -> _fovea.RetrievalEvaluation:
    """Measures how well a model finds documents for queries, as BEIR and trec_eval do.

    reranker: sorts the documents found.
    """
    if isinstance(model, Encoder):
        return _fovea.evaluate_retrieval(model._embedder, reranker, **data)
    return _fovea.evaluate_retrieval(model, reranker, **data)


@documented("evaluate_sentences")
def evaluate_sentences(
    encoder: Encoder, **data: Unpack[EvaluateSentencesOptions]
) -> _fovea.SentenceEvaluation:
    """Measures vectors on files of scored pairs, labelled pairs, translations or labelled texts."""
    return _fovea.evaluate_sentences(encoder._embedder, **data)


@documented("probe")
def linear_probe(encoder: Encoder, **options: Unpack[ProbeOptions]) -> _fovea.ProbeResult:
    """Measures what linear models read from the vectors of texts, by cross-validation."""
    return _fovea.linear_probe(encoder._embedder, **options)
