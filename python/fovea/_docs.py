"""Docstrings with the options of a call, from the descriptions that the command line has too."""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Callable
from typing import Any, TypeVar

from . import _fovea

Function = TypeVar("Function", bound=Callable[..., Any])


def documented(*calls: str) -> Callable[[Function], Function]:
    """Adds the options of these calls to a docstring."""

    def add(function: Function) -> Function:
        lines = [inspect.cleandoc(function.__doc__ or ""), "", "Options:"]
        for call in calls:
            lines += [_line(option) for option in _fovea.describe_options(call)]
        function.__doc__ = "\n".join(lines)
        return function

    return add


def _line(option: dict[str, Any]) -> str:
    default = option["default"]
    facts = [option["type"].replace("Texts", "str | Sequence[str]")]
    if option["range"]:
        facts.append(option["range"])
    if default not in (None, "", []):
        facts.append(f"default {default!r}")
    text = f"{option['name']} ({', '.join(facts)}): {option['help']}"
    return textwrap.fill(text, 96, initial_indent="    ", subsequent_indent="        ")
