"""Docstrings with the options of a call, from the descriptions that the command line has too."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

from . import _fovea

Function = TypeVar("Function", bound=Callable[..., Any])


def documented(*calls: str) -> Callable[[Function], Function]:
    """Adds the options of these calls to a docstring."""

    def add(function: Function) -> Function:
        texts = [_described(call) for call in calls]
        function.__doc__ = (
            f"{(function.__doc__ or '').rstrip()}\n\n        Options:\n{''.join(texts)}"
        )
        return function

    return add


@functools.cache
def _described(call: str) -> str:
    return "".join(map(_line, _fovea.describe_options(call)))


def _line(option: dict[str, Any]) -> str:
    default = option["default"]
    facts = [option["type"].replace("Texts", "str | Sequence[str]")]
    if option["range"]:
        facts.append(option["range"])
    if default not in (None, "", []):
        facts.append(f"default {default!r}")
    return f"        {option['name']} ({', '.join(facts)}): {option['help']}\n"
