#!/usr/bin/env python3
"""Writes tests/goldens/config_types.json: for each family, a config.json as transformers saves its defaults, and the types that its class
accepts for each key. A directory with a value of another type is refused by transformers 5. Needs transformers 5.

    python3 tools/goldens/make_config_types.py
"""
import json
import types
import typing

from harness import GOLDENS
import transformers
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

FAMILIES = """gpt2 llama mistral mixtral qwen2 qwen3 qwen3_moe gemma2 gemma3_text phi3 olmo2 opt bloom gpt_neox starcoder2
gemma phi cohere cohere2 granite granitemoe granitemoeshared glm glm4 smollm3 olmo3 olmoe qwen2_moe ernie4_5 ernie4_5_moe exaone4 stablelm falcon gpt_bigcode gptj
codegen gpt_neo mpt seed_oss arcee helium nemotron ministral ministral3 hunyuan_v1_dense nanochat modernbert-decoder mt5 umt5 mbart m2m_100 pegasus bert electra roberta
camembert data2vec-text roberta-prelayernorm albert roformer rembert jina_embeddings_v3 nomic_bert gte eurobert distilbert mpnet modernbert deberta deberta-v2 t5 bart marian vit deit dinov2 dinov2_with_registers clip_vision_model clip_text_model siglip_vision_model
siglip_text_model whisper""".split()
NAMES = {bool: "bool", int: "int", float: "float", str: "str", list: "list", tuple: "list", dict: "dict", type(None): "null"}
# Keys of all classes, whose annotations name types of torch or of transformers.
ANY = {"dtype", "torch_dtype", "architectures", "id2label", "label2id", "transformers_version", "model_type", "quantization_config"}


def names_of(annotation):
    """The JSON types of an annotation; empty if any type will do."""
    origin = typing.get_origin(annotation)
    if origin in (typing.Union, types.UnionType):
        parts = [names_of(part) for part in typing.get_args(annotation)]
        return set() if any(not part for part in parts) else set().union(*parts)
    if origin is typing.Annotated:
        return names_of(typing.get_args(annotation)[0])
    if origin is typing.Literal:
        return {NAMES[type(value)] for value in typing.get_args(annotation)}
    kind = origin or annotation
    if isinstance(kind, type):
        for known, name in NAMES.items():
            if kind is known:
                return {name}
        if issubclass(kind, dict):
            return {"dict"}
    return set()


def hints(config_class):
    """The annotations by key, under the names that config.json has."""
    found = {}
    for base in reversed(config_class.__mro__):
        for key, annotation in vars(base).get("__annotations__", {}).items():
            if isinstance(annotation, str):
                try:
                    annotation = eval(annotation, vars(__import__(base.__module__, fromlist=["x"])))  # noqa: S307
                except Exception:
                    continue
            found[key] = annotation
    return found


def main():
    families = {}
    for name in FAMILIES:
        config_class = CONFIG_MAPPING[name]
        found = {}
        for key, annotation in hints(config_class).items():
            accepted = sorted(names_of(annotation))
            if accepted and key not in ANY and not key.startswith("_"):
                found[key] = accepted
        for other, key in getattr(config_class, "attribute_map", {}).items():
            if key in found:
                found.setdefault(other, found[key])
        config = config_class()
        saved = json.loads(config.to_json_string(use_diff=False))
        families[name] = {"config": {key: value for key, value in saved.items() if key not in ("transformers_version", "_name_or_path")},
                          "types": found}
    (GOLDENS / "config_types.json").write_text(
        json.dumps({"transformers": transformers.__version__, "families": families}, indent=None, separators=(",", ":")).replace('},"', '},\n"')
        + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
