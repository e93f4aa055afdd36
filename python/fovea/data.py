"""Data in memory as files that training reads: lists, generators, data frames, tables, data sets."""

from __future__ import annotations

import itertools
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from . import _fovea

_PATH_ENDS = (".txt", ".jsonl", ".json", ".csv", ".tsv", ".conll", ".parquet", ".gz")


def is_in_memory(data: Any) -> bool:
    """Whether `data` holds records, not paths. A list of strings holds paths if they exist."""
    if data is None or isinstance(data, (str, os.PathLike)):
        return False
    if not isinstance(data, (list, tuple)):
        return True
    if not data or not all(isinstance(item, (str, os.PathLike)) for item in data):
        return bool(data)
    return not any(_looks_like_path(item) for item in data)


def _looks_like_path(item: str | os.PathLike[str]) -> bool:
    if isinstance(item, os.PathLike):
        return True
    path = item if os.path.exists(item) else item.rpartition(":")[0]  # path:weight
    if path and os.path.exists(path):
        return True
    return item.lower().endswith(_PATH_ENDS) and len(item.split()) == 1


def records_of(data: Any) -> Iterator[Any]:
    """Returns the records of a data frame of pandas, a table of pyarrow, a data set or a list."""
    if hasattr(data, "to_batches"):  # pyarrow
        return itertools.chain.from_iterable(batch.to_pylist() for batch in data.to_batches())
    if hasattr(data, "to_dict") and hasattr(data, "columns"):  # pandas
        return iter(data.to_dict("records"))
    if hasattr(data, "tolist") and hasattr(data, "name"):  # a column of pandas
        return iter(data.tolist())
    return iter(data)


class MemoryFiles:
    """The files of data in memory, in a folder of the run, so that the same call resumes it."""

    def __init__(self, folder: str) -> None:
        self._folder = folder

    def path_of(self, field: str, data: Any) -> Any:
        """Returns `data` if it has paths, or else the path of a file with its records."""
        if not is_in_memory(data):
            return data
        write = _write_pairs if field.endswith("pairs") else _write_records
        path = os.path.join(self._folder, field + (".tsv" if field.endswith("pairs") else ".jsonl"))
        os.makedirs(self._folder, exist_ok=True)
        part = path + ".part"
        with open(part, "w", encoding="utf-8") as file:
            if write(file, field, records_of(data)) == 0:
                raise _fovea.InvalidArgument(f"{field}: no records; expected at least one")
        os.replace(part, path)
        return path


def _write_records(file: Any, field: str, records: Iterable[Any]) -> int:
    count = 0
    for record in records:
        record = _labelled(record) if field.endswith("labels") else _text(record)
        file.write(json.dumps(record, ensure_ascii=False, default=_plain) + "\n")
        count += 1
    return count


def _text(record: Any) -> Mapping[str, Any]:
    return record if isinstance(record, Mapping) else {"text": str(record)}


def _labelled(record: Any) -> Mapping[str, Any]:
    """A dict, or (text, label), ((text, second text), label), or (words, labels)."""
    if isinstance(record, Mapping):
        return {key: _label(key, value) for key, value in record.items()}
    text, label = record
    if isinstance(text, str):
        key = "labels" if isinstance(label, (list, tuple)) else "label"
        return {"text": text, key: _label(key, label)}
    if isinstance(text, tuple) and len(text) == 2 and not isinstance(label, (list, tuple)):
        return {"text": text[0], "text_pair": text[1], "label": _label("label", label)}
    return {"words": list(text), "labels": list(label)}


def _label(key: str, value: Any) -> Any:
    """Whole numbers are names of classes; floats are numbers to predict."""
    if key != "label" or isinstance(value, (str, list)):
        return value
    value = _plain(value) if hasattr(value, "item") else value
    return value if isinstance(value, float) else str(value)


def _write_pairs(file: Any, field: str, records: Iterable[Any]) -> int:
    count = 0
    for record in records:
        sides = list(record.values()) if isinstance(record, Mapping) else list(record)
        if len(sides) != 2:
            raise _fovea.InvalidArgument(f"{field}: {record!r}; expected a source and a target")
        file.write("\t".join(" ".join(str(side).split()) for side in sides) + "\n")
        count += 1
    return count


def _plain(value: Any) -> Any:
    if hasattr(value, "tolist"):
        return value.tolist()
    if hasattr(value, "item"):
        return value.item()
    if hasattr(value, "isoformat"):
        return value.isoformat()
    raise TypeError(f"{type(value).__name__}: no value of JSON; expected texts, numbers and lists")
