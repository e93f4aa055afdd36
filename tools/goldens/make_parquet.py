#!/usr/bin/env python3
"""Writes tests/goldens/parquet: small files of Apache Parquet by pyarrow, with all shapes of columns that data sets of the Hugging Face Hub
have, and their rows as JSON lines. Needs pyarrow (written with 26.0.1)."""
import json
import pathlib
import sys

import pyarrow
import pyarrow.parquet

ROOT = pathlib.Path(__file__).resolve().parents[2]

ROWS = [
    {"text": "first \"row\"\n", "label": 1, "score": 0.5, "good": True, "words": ["a", "b", None], "choices": {"text": ["x", "yé"], "label": ["A", "B"]},
     "messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello."}], "tags": [["p"], [], None]},
    {"text": None, "label": -(1 << 40), "score": None, "good": False, "words": [], "choices": {"text": [], "label": None}, "messages": [], "tags": []},
    {"text": "", "label": None, "score": -1e300, "good": None, "words": None, "choices": None, "messages": None, "tags": None},
    {"text": "🙂 last", "label": 0, "score": 3.0, "good": True, "words": ["c"], "choices": {"text": ["z"], "label": ["C"]},
     "messages": [{"role": "user", "content": None}], "tags": [[None, "q"]]},
]
SCHEMA = pyarrow.schema([
    ("text", pyarrow.string()), ("label", pyarrow.int64()), ("score", pyarrow.float64()), ("good", pyarrow.bool_()),
    ("words", pyarrow.list_(pyarrow.string())),
    ("choices", pyarrow.struct([("text", pyarrow.list_(pyarrow.string())), ("label", pyarrow.list_(pyarrow.string()))])),
    ("messages", pyarrow.list_(pyarrow.struct([("role", pyarrow.string()), ("content", pyarrow.string())]))),
    ("tags", pyarrow.list_(pyarrow.list_(pyarrow.string())))])


def main():
    out = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "tests/goldens/parquet"
    out.mkdir(parents=True, exist_ok=True)
    rows = ROWS * 10
    table = pyarrow.Table.from_pylist(rows, SCHEMA)
    (out / "rows.jsonl").write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    for name, options in {"snappy": {}, "zstd_v2": {"compression": "zstd", "data_page_version": "2.0"}, "gzip_plain": {"compression": "gzip", "use_dictionary": False},
                          "none": {"compression": "none", "row_group_size": 7, "data_page_size": 64}}.items():
        pyarrow.parquet.write_table(table, out / f"{name}.parquet", store_schema=False, **options)
    pyarrow.parquet.write_table(table.select(["text"]), out / "lz4.parquet", compression="lz4", store_schema=False)
    # Several documents of text, for a training.
    texts = [{"text": f"The fox of line {i} sees the light. " * 20} for i in range(40)]
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(texts), out / "texts.parquet", store_schema=False)
    (out / "texts.jsonl").write_text("".join(json.dumps(row) + "\n" for row in texts), encoding="utf-8")
    other = pyarrow.table({"small": pyarrow.array([1, 2], pyarrow.int32()), "half": pyarrow.array([0.25, 2], pyarrow.float32()),
                           "image": pyarrow.array([b"\xff\xd8", b"x"]), "kind": pyarrow.array(["a", "a"]).dictionary_encode()})
    pyarrow.parquet.write_table(other, out / "other.parquet", store_schema=False)


if __name__ == "__main__":
    main()
