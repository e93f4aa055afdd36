#!/usr/bin/env python3
"""Writes tests/goldens/model_input.json: the logits that transformers computes for texts and pairs, short and long, with each setting of
tokenizer_config.json and config.json that changes the tokens which a classifier reads. Needs torch and transformers 5.

    python3 tools/goldens/make_model_input.py
"""
import json
import pathlib
import shutil
import tempfile

from harness import GOLDENS, write_json
import torch
import transformers
from transformers import AutoModelForSequenceClassification, AutoModelForTokenClassification, AutoTokenizer

from support import edit_json

MODELS = GOLDENS / "classifiers"
LONG = "the fox sees the bird and the eye of the night is light , and the sun is old . the fox is calm and the bird sings of the sun"
INPUTS = [["the fox sees the bird"], [LONG], ["the fox sees", "the bird is old"], [LONG, "the eye is light and the fox is calm ."],
          ["the eye is light", LONG], [LONG, LONG + " the night"]]
# Keys of tokenizer_config.json; null removes a key.
SETTINGS = [{}, {"truncation_side": "left"}, {"model_max_length": 12}, {"model_max_length": 12, "truncation_side": "left"},
            {"model_input_names": None}, {"model_input_names": None, "tokenizer_class": "BertTokenizer"},
            {"model_input_names": None, "tokenizer_class": "PreTrainedTokenizerFast"}, {"model_input_names": None, "tokenizer_class": None}]


def logits_of(folder, kind, inputs):
    tokenizer = AutoTokenizer.from_pretrained(folder)
    classes = AutoModelForTokenClassification if kind == "words" else AutoModelForSequenceClassification
    model = classes.from_pretrained(folder).eval()
    found = []
    for texts in inputs:
        with torch.no_grad():
            found.append(model(**tokenizer(*texts, truncation=True, return_tensors="pt")).logits[0].double().tolist())
    return found


def case(name, settings, config, inputs):
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder) / name
        shutil.copytree(MODELS / name, folder)
        edit_json(folder / "tokenizer_config.json", settings)
        edit_json(folder / "config.json", config)
        return {"model": name, "tokenizer_config": settings, "config": config, "inputs": inputs, "logits": logits_of(folder, name, inputs)}


def main():
    cases = [case(name, settings, {}, INPUTS) for name in ("texts", "decoder", "encoder_decoder") for settings in SETTINGS
             if name == "texts" or "model_input_names" not in settings]
    cases += [case(name, settings, {}, INPUTS[:2]) for name in ("several", "regression") for settings in SETTINGS[:4]]
    # The padding token is a word, and some texts end with it: the head reads the last other token.
    vocabulary = json.loads((MODELS / "decoder/tokenizer.json").read_text(encoding="utf-8"))["model"]["vocab"]
    for padding in ("fox", "the"):
        cases.append(case("decoder", {}, {"pad_token_id": vocabulary[padding]},
                          [["the bird sees the fox"], ["the bird fox fox"], ["fox"], ["fox fox"], ["the bird"]]))
    write_json(GOLDENS / "model_input.json", {"transformers": transformers.__version__, "cases": cases}, indent=1)


if __name__ == "__main__":
    main()
