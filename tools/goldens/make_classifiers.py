#!/usr/bin/env python3
"""Writes tests/goldens/classifiers: tiny models with every kind of head, and the results of transformers for some texts.

Needs torch, transformers (made with 5.23), tokenizers and safetensors. Each folder has a model with
random weights and expected.json: `texts` with the labels, entities, answers or candidates that the pipelines of transformers return.
Since transformers 5 has no pipeline for questions, answers() is a copy of the algorithm of its last one, in NumPy."""
import shutil

import harness
import numpy as np
import torch
from tokenizers import decoders
from transformers import (BartConfig, BartForSequenceClassification, BertConfig, BertForMaskedLM, BertForQuestionAnswering,
                          BertForSequenceClassification, BertForTokenClassification, LlamaConfig, LlamaForSequenceClassification,
                          PreTrainedTokenizerFast, T5Config, T5ForTokenClassification, pipeline)

GOLDENS = harness.GOLDENS / "classifiers"
PIECES = "a the fox eye ##s light bird see hear sleep ##ing fall : on in night day and never ? paris an ##na lee who it is sport this example . x".split()
TEXTS = ["the fox sees Anna Lee in Paris.", "night", "A BIRD hears the falling lights, and Anna?", "unknown words é x"]
SIZES = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 24}
INFERENCE = ["contradiction", "neutral", "entailment"]
TAGS = ["O", "B-PER", "I-PER", "B-LOC", "I-LOC"]
JOININGS = ["none", "simple", "first", "average", "max"]


def tokenizer(**special):
    tok = harness.word_pieces(PIECES, bool(special))
    tok.decoder = decoders.WordPiece()
    return PreTrainedTokenizerFast(tokenizer_object=tok, pad_token="[PAD]", unk_token="[UNK]", model_max_length=32, **special,
                                   model_input_names=["input_ids", "attention_mask"] + ["token_type_ids"] * bool(special))


def without_types(tok):
    tok.model_input_names = ["input_ids", "attention_mask"]
    return tok


BERT = {"cls_token": "[CLS]", "sep_token": "[SEP]", "mask_token": "[MASK]"}


def named(labels):
    return {"num_labels": len(labels), "id2label": dict(enumerate(labels)), "label2id": {label: i for i, label in enumerate(labels)}}


def bert(cls, **more):
    return cls(BertConfig(vocab_size=len(PIECES) + 5, max_position_embeddings=32, pad_token_id=0, **SIZES, **more))


def write(name, model, tok, expected):
    model = harness.shaken(model, 0.3, seed=11).eval()
    folder = GOLDENS / name
    shutil.rmtree(folder, ignore_errors=True)
    model.save_pretrained(folder)
    tok.save_pretrained(folder)
    harness.write_json(folder / "expected.json", expected(model, tok), indent=1, default=float, ensure_ascii=False)


def labels(model, tok):
    classify = pipeline("text-classification", model=model, tokenizer=tok)
    pair = classify({"text": TEXTS[0], "text_pair": TEXTS[1]}, top_k=None)
    return {"texts": TEXTS, "labels": [classify(text, top_k=None) for text in TEXTS], "pair": pair}


def inference(model, tok):
    choose = pipeline("zero-shot-classification", model=model, tokenizer=tok)
    candidates = ["sport", "night", "light"]
    one, several = choose(TEXTS[0], candidates), choose(TEXTS[0], candidates, multi_label=True)
    pick = lambda result: [{"label": label, "score": score} for label, score in zip(result["labels"], result["scores"])]
    return {**labels(model, tok), "candidates": candidates, "one": pick(one), "several": pick(several)}


def entities(model, tok):
    find = pipeline("token-classification", model=model, tokenizer=tok)
    keys = ("start", "end", "score")
    return {"texts": TEXTS, **{joining: [[{"label": e.get("entity_group", e.get("entity")), **{key: e[key] for key in keys}}
                                          for e in find(text, aggregation_strategy=joining)] for text in TEXTS] for joining in JOININGS}}


def candidates(model, tok):
    fill = pipeline("fill-mask", model=model, tokenizer=tok, top_k=3)
    texts = ["the [MASK] sees", "a [MASK] hears the [MASK]."]
    return {"texts": texts, "masks": [[fill(texts[0])], fill(texts[1])]}


def probabilities(logits, allowed):
    x = np.where(allowed, logits.double().numpy(), -10000.0)
    x = np.exp(x - x.max())
    return x / x.sum()


def answers(model, tok, question, context, top, null, most=15):
    """The question-answering pipeline of transformers 4, with windows of the model's context."""
    length = tok.model_max_length
    room = length - tok.num_special_tokens_to_add(pair=True) - len(tok(question, add_special_tokens=False)["input_ids"])
    read = tok(question, context, truncation="only_second", max_length=length, stride=min(128, room // 2), return_overflowing_tokens=True)
    found, none = [], 1.0
    for i, ids in enumerate(read["input_ids"]):
        encoding = read.encodings[i]
        with torch.no_grad():
            out = model(torch.tensor([ids]), token_type_ids=torch.tensor([read["token_type_ids"][i]]))
        in_context = np.array([part == 1 for part in read.sequence_ids(i)])
        allowed = in_context | (np.array(ids) == tok.cls_token_id)
        begin, end = probabilities(out.start_logits[0], allowed), probabilities(out.end_logits[0], allowed)
        none = min(none, begin[0] * end[0])
        begin[0] = end[0] = 0
        spans = np.tril(np.triu(np.outer(begin, end)), most - 1).flatten()
        for place in np.argsort(-spans, kind="stable")[:top * 2 + 10]:
            first, last = divmod(place, len(ids))
            if not (in_context[first] and in_context[last]):
                continue
            start = encoding.word_to_chars(encoding.token_to_word(first), 1)[0]
            stop = encoding.word_to_chars(encoding.token_to_word(last), 1)[1]
            text, same = context[start:stop], [a for a in found if a["answer"].lower() == context[start:stop].lower()]
            if same:
                same[0]["score"] += spans[place]
            else:
                found.append({"score": spans[place], "start": start, "end": stop, "answer": text})
    if null:
        found.append({"score": none, "start": 0, "end": 0, "answer": ""})
    return sorted(found, key=lambda a: -a["score"])[:top]


def all_answers(model, tok):
    question, contexts = "Who sees it?", [TEXTS[0], " ".join(TEXTS * 3)]
    return {"question": question, "contexts": contexts, "best": [answers(model, tok, question, c, 1, False) for c in contexts],
            "three": [answers(model, tok, question, c, 3, True) for c in contexts]}


def t5_tagger():
    return T5ForTokenClassification(T5Config(vocab_size=len(PIECES) + 5, d_model=16, d_kv=8, d_ff=24, num_layers=2, num_heads=2, pad_token_id=0,
                                             eos_token_id=3, decoder_start_token_id=0, **named(TAGS)))


def main():
    harness.quiet()
    torch.manual_seed(5)
    V = len(PIECES) + 5
    write("texts", bert(BertForSequenceClassification, **named(INFERENCE)), tokenizer(**BERT), inference)
    write("several", bert(BertForSequenceClassification, problem_type="multi_label_classification", **named(["calm", "loud", "old"])),
          tokenizer(**BERT), labels)
    write("regression", bert(BertForSequenceClassification, problem_type="regression", **named(["grade"])), tokenizer(**BERT), labels)
    write("words", bert(BertForTokenClassification, **named(TAGS)), tokenizer(**BERT), entities)
    write("answers", bert(BertForQuestionAnswering), tokenizer(**BERT), all_answers)
    write("masks", bert(BertForMaskedLM), tokenizer(**BERT), candidates)
    llama = LlamaConfig(vocab_size=V, max_position_embeddings=32, num_key_value_heads=1, pad_token_id=0, bos_token_id=None, eos_token_id=None,
                        **SIZES, **named(INFERENCE))
    write("decoder", LlamaForSequenceClassification(llama), tokenizer(), labels)
    bart = BartConfig(vocab_size=V, max_position_embeddings=32, d_model=16, encoder_layers=1, decoder_layers=1, encoder_attention_heads=2,
                      decoder_attention_heads=2, encoder_ffn_dim=24, decoder_ffn_dim=24, pad_token_id=0, bos_token_id=2, eos_token_id=3,
                      decoder_start_token_id=3, forced_eos_token_id=3, **named(INFERENCE))
    write("encoder_decoder", BartForSequenceClassification(bart), without_types(tokenizer(**BERT)), labels)
    write("words_of_t5", t5_tagger(), without_types(tokenizer(**BERT)), entities)


if __name__ == "__main__":
    main()
