#!/usr/bin/env python3
"""Writes tests/goldens/sparse_model, sparse_router, multi_vector_model and pylate_model: tiny models, and the results of sentence-transformers.

Needs the packages of make_sentence_models.py (made with sentence-transformers 6.2). sparse_model is a masked
language model with SpladePooling; its expected.safetensors contains the `vectors` [texts, V] of texts.json, those of the other settings
(`sum`, `log1p`), and the 3 largest elements of each (`top`). sparse_router has a table of weights for queries. multi_vector_model is a late
interaction model with prompts, query expansion and a skiplist; expected.safetensors contains all rows of the texts as `documents` and `queries`
with the numbers of rows, and the `scores` of the texts for the first text as a query. pylate_model has the files of PyLate 3."""
import json
import shutil
import string

from harness import GOLDENS, remove, write_json
import torch
from make_sentence_models import SIZES, TEXTS, finish, shaken, tokenizer, write_transformer
from sentence_transformers import MultiVectorEncoder, SparseEncoder
from sentence_transformers.base.modules import Dense, Normalize, Router, Transformer
from sentence_transformers.multi_vector_encoder.modules import MultiVectorMask
from sentence_transformers.sparse_encoder.modules import SparseStaticEmbedding, SpladePooling
from transformers import BertConfig, BertForMaskedLM, BertModel

MARKERS = ["[unused0]", "[unused1]"]


def masked_model(folder):
    write_transformer(folder, BertForMaskedLM(BertConfig(**SIZES)))
    return Transformer(str(folder), transformer_task="fill-mask", max_seq_length=12)


def dense(rows):
    return rows.to_dense() if rows.is_sparse else rows


def sparse_model():
    folder, plain = GOLDENS / "sparse_model", GOLDENS / "plain"
    torch.manual_seed(3)
    base = masked_model(plain)
    expected = {}
    for name, pooling in {"sum": SpladePooling("sum"), "log1p": SpladePooling("max", "log1p_relu")}.items():
        expected[name] = dense(SparseEncoder(modules=[base, pooling], device="cpu").encode(TEXTS))
    model = SparseEncoder(modules=[base, SpladePooling("max")], prompts={"query": "query : "}, device="cpu")
    expected["vectors"] = dense(model.encode(TEXTS))
    expected["query"] = dense(model.encode_query(TEXTS))
    expected["top"] = dense(model.encode(TEXTS, max_active_dims=3))
    shutil.rmtree(folder, ignore_errors=True)
    model.save(str(folder), create_model_card=False)
    shutil.rmtree(plain)
    finish(folder, expected)


def sparse_router():
    folder, plain = GOLDENS / "sparse_router", GOLDENS / "plain"
    torch.manual_seed(4)
    base = masked_model(plain)
    weight = torch.rand(SIZES["vocab_size"]) * 3
    table = SparseStaticEmbedding(base.tokenizer, weight=weight, frozen=True)
    router = Router.for_query_document(query_modules=[table], document_modules=[base, SpladePooling("max", "log1p_relu")])
    model = SparseEncoder(modules=[router], device="cpu", similarity_fn_name="dot")
    expected = {"documents": dense(model.encode_document(TEXTS)), "queries": dense(model.encode_query(TEXTS))}
    shutil.rmtree(folder, ignore_errors=True)
    model.save(str(folder), create_model_card=False)
    shutil.rmtree(plain)
    finish(folder, expected)
    for part in filter(lambda path: path.is_dir(), folder.iterdir()):
        remove(part, "special_tokens_map.json", "vocab.txt")


def rows_of(name, matrices):
    return {name: torch.cat(matrices), name + ".counts": torch.tensor([len(m) for m in matrices])}


def results(model):
    documents, queries = model.encode_document(TEXTS), model.encode_query(TEXTS)
    scores = model.similarity(queries[:1], documents)[0]
    return {**rows_of("documents", documents), **rows_of("queries", queries), "scores": scores}


def late_interaction(attend):
    torch.manual_seed(5)
    plain = GOLDENS / "plain"
    model = shaken(BertModel(BertConfig(**{**SIZES, "vocab_size": SIZES["vocab_size"] + len(MARKERS)})))
    model.save_pretrained(plain)
    tok = tokenizer()
    tok.add_tokens(MARKERS, special_tokens=True)
    tok.save_pretrained(plain)
    expansion = {"strategy": "fixed", "attend": attend, "length": 10}
    base = Transformer(str(plain), document_length=12, query_expansion=expansion)
    return base, shaken(Dense(16, 8, bias=False, activation_function=torch.nn.Identity(), module_input_name="token_embeddings"))


def multi_vector_model():
    folder = GOLDENS / "multi_vector_model"
    base, projection = late_interaction(False)
    model = MultiVectorEncoder(modules=[base, projection, MultiVectorMask(list(string.punctuation)), Normalize("token_embeddings")],
                               prompts={"query": "[unused0] ", "document": "[unused1] "}, device="cpu")
    shutil.rmtree(folder, ignore_errors=True)
    model.save(str(folder), create_model_card=False)
    expected = results(model)
    base.query_expansion = {"strategy": "min", "attend": True, "length": 9}
    expected.update({name + ".min": value for name, value in rows_of("queries", model.encode_query(TEXTS)).items()})
    finish(folder, expected)
    shutil.rmtree(GOLDENS / "plain")


def pylate_model():
    folder = GOLDENS / "pylate_model"
    base, projection = late_interaction(True)
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(GOLDENS / "plain", folder)
    (folder / "1_Dense").mkdir()
    projection.save(str(folder / "1_Dense"))
    config = json.loads((folder / "1_Dense/config.json").read_text())
    kept = {key: config[key] for key in ("in_features", "out_features", "bias", "activation_function")}
    (folder / "1_Dense/config.json").write_text(json.dumps(kept, indent=1))
    types = {"": "sentence_transformers.models.Transformer", "1_Dense": "pylate.models.Dense.Dense"}
    modules = [{"idx": i, "name": str(i), "path": path, "type": kind} for i, (path, kind) in enumerate(types.items())]
    write_json(folder / "modules.json", modules, indent=1)
    (folder / "sentence_bert_config.json").write_text('{"max_seq_length": 19, "do_lower_case": false}\n')
    settings = {"model_type": "ColBERT", "query_prefix": "[unused0] ", "document_prefix": "[unused1] ", "query_length": 10, "document_length": 12,
                "attend_to_expansion_tokens": True, "skiplist_words": list("?,"), "similarity_fn_name": "MaxSim"}
    write_json(folder / "config_sentence_transformers.json", settings, indent=1)
    finish(folder, results(MultiVectorEncoder(str(folder), device="cpu")))
    shutil.rmtree(GOLDENS / "plain")


if __name__ == "__main__":
    sparse_model()
    sparse_router()
    multi_vector_model()
    pylate_model()
