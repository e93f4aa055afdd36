"""Vectors of texts, with the names of sentence-transformers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from . import _fovea
from ._docs import documented
from ._hub import adapters_of, resolved

if TYPE_CHECKING:
    from typing import Unpack

    import numpy as np
    from numpy.typing import NDArray

    from ._hub import Path
    from ._options import EmbedOptions, ExplainOptions

    Vectors = NDArray[np.float32]


class Encoder:
    """Computes vectors of texts; texts of similar meaning have vectors of similar direction."""

    def __init__(
        self,
        path: Path,
        *,
        precision: str = "stored",
        adapters: Path | Sequence[Path] | Mapping[str, float] | None = None,
    ) -> None:
        """Opens a sentence-transformers directory, or one of an encoder or decoder."""
        self.path = resolved(path)
        self._how = (precision, adapters_of(adapters))
        self._embedder = _fovea.Embedder(self.path, *self._how)

    @documented("embed")
    def encode(
        self,
        texts: str | Sequence[str],
        *,
        batch_size: int | None = None,
        prompt_name: str | None = None,
        normalize: bool | None = None,
        normalize_embeddings: bool | None = None,
        **options: Unpack[EmbedOptions],
    ) -> Vectors:
        """Returns the vector of a text, float32 [width], or of texts, float32 [texts, width].

        batch_size: at most so many texts of the greatest length per pass; None = what is fast. It
        does not change the results. prompt_name: the name of one of the model's prompts.
        normalize: scale each vector to length 1; None = as the model's files say.
        """
        given: dict[str, Any] = dict(options)
        normalize = normalize_embeddings if normalize is None else normalize
        if normalize is not None:
            given["normalise"] = normalize
        if batch_size is not None:
            given["batch_tokens"] = batch_size * self.max_tokens
        single = isinstance(texts, str)
        rows = [texts] if isinstance(texts, str) else list(texts)
        vectors: Vectors = self._embedder.embed(rows, prompt_name=prompt_name, **given)
        return vectors[0] if single else vectors

    def encode_query(self, texts: str | Sequence[str], **options: Any) -> Vectors:
        """encode() with the model's prompt for queries, if it has one."""
        return self.encode(texts, prompt_name=self._prompt("query"), **options)

    def encode_document(self, texts: str | Sequence[str], **options: Any) -> Vectors:
        """encode() with the model's prompt for documents, if it has one."""
        return self.encode(
            texts, prompt_name=self._prompt("document", "passage", "corpus"), **options
        )

    def _prompt(self, *names: str) -> str | None:
        return next((name for name in names if name in self.prompts), None)

    @documented("embed")
    def encode_tokens(
        self, text: str, **options: Unpack[EmbedOptions]
    ) -> tuple[list[tuple[int, int]], Vectors]:
        """Returns the bytes of each token and its vector of length 1, float32 [tokens, width]."""
        return self._embedder.embed_tokens(text, **options)

    def similarity(self, a: Any, b: Any) -> Vectors:
        """Returns the similarities of vectors, float32 [a, b], by the model's own function."""
        import numpy as np

        rows = [np.ascontiguousarray(np.atleast_2d(x), dtype=np.float32) for x in (a, b)]
        return self._embedder.similarity(*rows)

    @documented("explain", "embed")
    def explain(
        self, texts: str | Sequence[str], other: str, **options: Unpack[ExplainOptions]
    ) -> Any:
        """Attributes the similarity of texts with another text to their tokens."""
        single = isinstance(texts, str)
        rows = [texts] if isinstance(texts, str) else list(texts)
        found = _fovea.explain_similarity(self._embedder, rows, other, **options)
        return found[0] if single else found

    def evaluate(self, file: Path, **options: Any) -> dict[str, float]:
        """Returns the correlations of similarities with the scores of the pairs in a file."""
        return _fovea.evaluate_similarity(self._embedder, str(file), **options)

    def evaluate_poolings(self, file: Path, **options: Any) -> dict[str, dict[str, float]]:
        """Evaluates each way to make one vector of those of the tokens."""
        return _fovea.evaluate_poolings(self._embedder, str(file), **options)

    @property
    def width(self) -> int:
        """The elements of a vector."""
        return self._embedder.width

    def get_sentence_embedding_dimension(self) -> int:
        """The width, by the name that sentence-transformers has for it."""
        return self._embedder.width

    @property
    def max_tokens(self) -> int:
        """The maximum tokens of a text; longer ones are truncated."""
        return self._embedder.max_tokens

    @property
    def prompts(self) -> dict[str, str]:
        """The model's prompts by their names."""
        return self._embedder.prompts

    @property
    def similarity_name(self) -> str:
        """cosine, dot, euclidean or manhattan."""
        return self._embedder.similarity_name

    @property
    def pooling(self) -> str:
        """How the vectors of tokens become one."""
        return self._embedder.pooling

    @property
    def tokenizer(self) -> _fovea.Tokenizer:
        """The tokenizer."""
        return self._embedder.tokenizer

    @property
    def spec(self) -> _fovea.Spec:
        """The architecture of the Transformer."""
        return self._embedder.spec

    @property
    def fingerprint(self) -> int:
        """A hash of the files that determine the vectors."""
        return self._embedder.fingerprint

    @property
    def warnings(self) -> list[str]:
        """Suspicious but harmless contents of the files."""
        return self._embedder.warnings

    def __repr__(self) -> str:
        return f"Encoder({self.path!r}, {self.width} elements)"

    def __getstate__(self) -> dict[str, Any]:
        return {"path": self.path, "_how": self._how}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._embedder = _fovea.Embedder(self.path, *self._how)
