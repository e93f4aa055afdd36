"""Writes _options.pyi, the options of each call as types, from the descriptions in the module, and completes the types that
nanobind has written.

Usage: write_types.py FOLDER_OF_THE_PACKAGE FILE"""

import importlib
import pathlib
import re
import sys


def class_name(call: str) -> str:
    return "".join(part.capitalize() for part in call.split("_")) + "Options"


# nanobind takes the classes of errors, which C++ makes, for names of the package.
ERRORS = """
__version__: str

class Error(Exception): ...
class InvalidArgument(Error, ValueError): ...
class BadFile(Error, OSError): ...
class Unsupported(Error, NotImplementedError): ...
class OutOfMemory(Error, MemoryError): ...
class Failed(Error, RuntimeError): ...
class Internal(Error, RuntimeError): ...
"""
# The arguments that a function has beside its options.
NAMED = {
    "train": ("from", "data", "out"),
    "train_embedder": ("model", "data", "out"),
    "mine_negatives": ("pairs",),
    "trace": ("text", "ids"),
    "embed": ("prompt_name",),
}


def complete(stub: pathlib.Path) -> None:
    """Generic types and keyword arguments get "Any"."""
    text = stub.read_text(encoding="utf-8")
    text = re.sub(r"(\*\*?\w+)(?=[,)])", r"\1: Any", text)
    text = re.sub(r"from fovea import \(\n    BadFile[^)]*\)\n", ERRORS, text)
    text = re.sub(r"(?<=[:>] )(list|tuple|dict)(?=[,):]| =|$)", r"\1@", text, flags=re.MULTILINE)
    for name, generic in (
        ("list", "list[Any]"),
        ("tuple", "tuple[Any, ...]"),
        ("dict", "dict[str, Any]"),
    ):
        text = text.replace(name + "@", generic)
    if not re.search(r"^(from typing import .*\bAny\b|import typing$)", text, re.MULTILINE):
        text = "from typing import Any\n" + text
    stub.write_text(text, encoding="utf-8")


def main() -> None:
    folder, path = sys.argv[1:]
    sys.path.insert(0, folder)
    module = importlib.import_module("fovea._fovea")
    lines = [
        '"""The options of each call, which the build writes."""',
        "",
        "import os",
        "from collections.abc import Callable, Mapping, Sequence",
        "from typing import Any, Literal, TypedDict",
        "",
        "Texts = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]",
    ]
    extra = {
        "generate": [
            ("schema", "Mapping[str, Any] | str | bool"),
            ("regex", "str"),
            ("gbnf", "str"),
            ("choices", "Sequence[str]"),
            ("logits", "Callable[[list[int], Any], object]"),
            ("logit_bias", "Mapping[int, float]"),
            ("keep_special", "bool"),
            ("draft", "Any"),
        ],
        "train": [("from_", "Any")],
    }
    for call in module.described_calls():
        options = [(each["name"], each["type"]) for each in module.describe_options(call)]
        if call == "train":  # data in memory
            data = ("labels", "pairs", "validation_chats", "validation_labels", "validation_pairs")
            options = [(name, "Any" if name in data else kind) for name, kind in options]
        options = [(name, kind) for name, kind in options if name not in NAMED.get(call, ())]
        lines += ["", f"class {class_name(call)}(TypedDict, total=False):"]
        named = dict(options + extra.get(call, []))
        lines += [f"    {name}: {kind} | None" for name, kind in named.items()]
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")
    for stub in (pathlib.Path(folder) / "fovea/_fovea").glob("*.pyi"):
        complete(stub)


main()
