#!/usr/bin/env python3
"""Writes tests/goldens/sentence_model and cross_encoder: tiny models, and the results of sentence-transformers for some texts.

Needs torch, transformers, sentence-transformers (made with 6.2) and safetensors. sentence_model is a
Transformer, a pooling (mean and last token concatenated, without the prompt), a dense layer, a LayerNorm and a normalisation, with prompts
and a maximum of 12 tokens. expected.safetensors contains the `vectors` of texts.json, those of the same texts as `query`, the result of
each pooling of the hidden states (`pool.NAME`), and the mean of weighted layers (`layers`, by layer_weights). cross_encoder contains
`scores` and `logits` of the first text with the others."""
import shutil

import harness
from harness import GOLDENS
import torch
from sentence_transformers import CrossEncoder, SentenceTransformer
from sentence_transformers.base.modules.dense import Dense
from sentence_transformers.base.modules.normalize import Normalize
from sentence_transformers.base.modules.transformer import Transformer
from sentence_transformers.sentence_transformer.modules.layer_norm import LayerNorm
from sentence_transformers.sentence_transformer.modules.pooling import Pooling
from sentence_transformers.sentence_transformer.modules.weighted_layer_pooling import WeightedLayerPooling
from transformers import BertConfig, BertForSequenceClassification, BertModel, PreTrainedTokenizerFast

WORDS = "a the fox eye light bird sees hears sleeps falls query : on in night day and never always ?".split()
TEXTS = ["the fox sees the bird", "A BIRD hears", "light falls on the eye", "night", "",
         "the fox and the bird and the eye and the light never sleeps in the night", "unknown words , the fox ?"]
SIZES = {"vocab_size": 5 + len(WORDS), "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2,
         "intermediate_size": 24, "max_position_embeddings": 20, "pad_token_id": 0}
MODES = ["cls", "max", "mean", "mean_sqrt_len_tokens", "weightedmean", "lasttoken"]
LAYER_WEIGHTS = [0.5, 2.0]


def tokenizer():
    return PreTrainedTokenizerFast(tokenizer_object=harness.word_pieces(WORDS), pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]", sep_token="[SEP]",
                                   mask_token="[MASK]", model_max_length=20,
                                   model_input_names=["input_ids", "token_type_ids", "attention_mask"])


def shaken(model):
    return harness.shaken(model, 0.2, seed=7).eval()


def write_transformer(folder, model):
    shutil.rmtree(folder, ignore_errors=True)
    shaken(model).save_pretrained(folder)
    tokenizer().save_pretrained(folder)


def transformer(folder):
    return Transformer(str(folder), max_seq_length=12)


def pooled(folder, *modules):
    model = SentenceTransformer(modules=[transformer(folder), *modules], device="cpu")
    return model.encode(TEXTS, convert_to_tensor=True, batch_size=1)


def weighted_layers(folder):
    base = transformer(folder)
    rows = []
    for text in TEXTS:
        batch = base.tokenizer([text], truncation=True, max_length=12, return_tensors="pt")
        hidden = base.model(**batch, output_hidden_states=True).hidden_states
        weighting = WeightedLayerPooling(16, num_hidden_layers=2, layer_start=1,
                                         layer_weights=torch.nn.Parameter(torch.tensor(LAYER_WEIGHTS)))
        mixed = weighting({"all_layer_embeddings": hidden})["token_embeddings"]
        rows.append(mixed.mean(1)[0])
    return torch.stack(rows)


def sentence_model():
    folder = GOLDENS / "sentence_model"
    torch.manual_seed(1)
    plain = folder.with_name("plain")
    write_transformer(plain, BertModel(BertConfig(**SIZES)))
    expected = {f"pool.{mode}": pooled(plain, Pooling(16, mode)) for mode in MODES}
    expected["layers"] = weighted_layers(plain)
    dense = shaken(Dense(32, 10))
    norm = shaken(LayerNorm(10))
    model = SentenceTransformer(modules=[transformer(plain), Pooling(16, ["mean", "lasttoken"], include_prompt=False), dense, norm, Normalize()],
                                prompts={"query": "query : "}, device="cpu")
    expected["vectors"] = model.encode(TEXTS, convert_to_tensor=True)
    expected["query"] = model.encode(TEXTS, prompt_name="query", convert_to_tensor=True)
    shutil.rmtree(folder, ignore_errors=True)
    model.save(str(folder), create_model_card=False)
    shutil.rmtree(plain)
    finish(folder, expected)


def cross_encoder():
    folder = GOLDENS / "cross_encoder"
    torch.manual_seed(2)
    write_transformer(folder, BertForSequenceClassification(BertConfig(**SIZES, num_labels=1)))
    model = CrossEncoder(str(folder), max_length=12, device="cpu")
    pairs = [(TEXTS[0], text) for text in TEXTS]
    expected = {"scores": model.predict(pairs, convert_to_tensor=True),
                "logits": model.predict(pairs, convert_to_tensor=True, activation_fn=torch.nn.Identity())}
    model.save_pretrained(str(folder), create_model_card=False)
    finish(folder, expected)


def finish(folder, expected):
    harness.remove(folder, "README.md", "special_tokens_map.json", "vocab.txt")
    harness.write_json(folder / "texts.json", TEXTS, indent=1)
    harness.write_tensors(folder / "expected.safetensors", {name: value.float() for name, value in expected.items()})


if __name__ == "__main__":
    sentence_model()
    cross_encoder()
