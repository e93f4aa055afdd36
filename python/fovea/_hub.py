"""Paths of models, and names of the Hugging Face Hub."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from . import _fovea

if TYPE_CHECKING:
    Path = str | os.PathLike[str]

# What fovea reads of a repository: never pickles.
_FILES = ["*.safetensors", "*.json", "*.txt", "*.model", "*.jinja", "*.spm", "*.tiktoken"]


def resolved(name: Path) -> str:
    """Returns the path of a model, which is fetched if it is only on the Hub."""
    text = os.fspath(name)
    missing = _fovea.missing_model(text)
    if missing is None:
        return _fovea.find_model(text)
    repository, revision = missing
    try:
        from huggingface_hub import snapshot_download  # type: ignore[import-not-found,unused-ignore]
    except ImportError:
        raise _fovea.BadFile(
            f"{text}: is no directory here and no model in the cache of the Hub; expected a path, "
            "or huggingface_hub to fetch it (pip install huggingface_hub)"
        ) from None
    path: str = snapshot_download(repository, revision=revision, allow_patterns=_FILES)
    return path


def adapters_of(adapters: object) -> list[tuple[str, float]]:
    """Returns folders of adapters with their weights: a path, a list of paths or a dict."""
    if adapters is None:
        return []
    if isinstance(adapters, (str, os.PathLike)):
        return [(resolved(adapters), 1.0)]
    if isinstance(adapters, dict):
        return [(resolved(path), float(weight)) for path, weight in adapters.items()]
    return [(resolved(path), 1.0) for path in adapters]  # type: ignore[attr-defined]
