"""A classifier and an encoder for scikit-learn: they work in Pipeline, clone and GridSearchCV."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.base import (  # type: ignore[import-untyped,import-not-found,unused-ignore]
    BaseEstimator,
    ClassifierMixin,
    TransformerMixin,
)
from sklearn.utils.validation import (  # type: ignore[import-untyped,import-not-found,unused-ignore]
    check_is_fitted,
)

from . import _fovea
from .encoder import Encoder
from .training import train


class TextEncoder(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Texts to vectors by an encoder, which fit() leaves as it is."""

    def __init__(
        self, path: str, prompt_name: str | None = None, normalize: bool | None = None
    ) -> None:
        self.path = path
        self.prompt_name = prompt_name
        self.normalize = normalize

    def fit(self, texts: Sequence[str], labels: Any = None) -> TextEncoder:
        """Opens the model."""
        self.encoder_ = Encoder(self.path)
        return self

    def transform(self, texts: Sequence[str]) -> Any:
        """Returns the vectors, float32 [texts, width]."""
        check_is_fitted(self)
        return self.encoder_.encode(
            list(texts), prompt_name=self.prompt_name, normalize=self.normalize
        )

    def get_feature_names_out(self, names: Any = None) -> Any:
        """The names of the elements of a vector."""
        return np.array([f"element{i}" for i in range(self.encoder_.width)], dtype=object)


class TextClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A Transformer that is trained to label texts: from random weights, or from a model."""

    def __init__(
        self,
        model: str | None = None,
        preset: str = "tiny",
        steps: int = 0,
        epochs: float = 0,
        learning_rate: float = -1,
        batch: int = 12,
        lora: int = 0,
        seed: int = 1337,
        options: dict[str, Any] | None = None,
    ) -> None:
        """model: where training begins; None = random weights of `preset`. options: others of
        fovea.train()."""
        self.model = model
        self.preset = preset
        self.steps = steps
        self.epochs = epochs
        self.learning_rate = learning_rate
        self.batch = batch
        self.lora = lora
        self.seed = seed
        self.options = options

    def fit(self, texts: Sequence[str], labels: Sequence[Any]) -> TextClassifier:
        """Trains on texts, or pairs of texts, and their labels."""
        self.classes_ = np.unique(np.asarray(labels))
        if len(self.classes_) < 2:
            raise _fovea.InvalidArgument("labels: a single class; expected at least two")
        names = {value: str(index) for index, value in enumerate(self.classes_.tolist())}
        given = [names[label.item() if hasattr(label, "item") else label] for label in labels]
        with tempfile.TemporaryDirectory() as folder:
            run = train(
                labels=list(zip(texts, given, strict=True)),
                out=os.path.join(folder, "run"),
                verbose=False,
                **self._training(),
            )
            # The files themselves are the state: a pickle holds them, and clones do not.
            self.files_ = _files_of(run.out)
        return self

    def _training(self) -> dict[str, Any]:
        chosen = {"steps": self.steps, "epochs": self.epochs, "lora": self.lora}
        given = {name: value for name, value in chosen.items() if value}
        if self.learning_rate >= 0:
            given["learning_rate"] = self.learning_rate
        start = {"from_": self.model} if self.model else {"preset": self.preset}
        return {"batch": self.batch, "seed": self.seed, **start, **given, **(self.options or {})}

    def _classifier(self) -> _fovea.Classifier:
        check_is_fitted(self)
        if getattr(self, "_opened", None) is None:
            with tempfile.TemporaryDirectory() as folder:
                for name, content in self.files_.items():
                    with open(os.path.join(folder, name), "wb") as file:
                        file.write(content)
                self._opened = _fovea.Classifier(folder)
        return self._opened

    def predict_proba(self, texts: Sequence[str]) -> Any:
        """Returns the probabilities of classes_, float32 [texts, classes]."""
        classifier = self._classifier()
        scores = classifier.classify(list(texts)).scores
        order = [classifier.labels.index(str(index)) for index in range(len(self.classes_))]
        return scores[:, order]

    def predict(self, texts: Sequence[str]) -> Any:
        """Returns the most probable class of each text."""
        return self.classes_[self.predict_proba(texts).argmax(axis=1)]

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = dict(super().__getstate__())
        state.pop("_opened", None)
        return state


def _files_of(folder: str) -> dict[str, bytes]:
    kept = {}
    for name in os.listdir(folder):
        path = os.path.join(folder, name)
        if os.path.isfile(path) and name.endswith((".json", ".safetensors", ".txt", ".model")):
            with open(path, "rb") as file:
                kept[name] = file.read()
    return kept
