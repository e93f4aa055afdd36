#!/usr/bin/env python3
"""Writes tests/goldens/explanations.json: attributions of tokens and deletion tests, computed with PyTorch for tiny models in tests/goldens.

Needs torch, transformers (made with 5.24) and sentence-transformers; run it in the root of the repository. A hook replaces the outputs
of the token embeddings, so that the gradients are those of PyTorch; attention weights are those of transformers."""
import json
import math
import pathlib
import sys
import warnings

import torch
from sentence_transformers import SentenceTransformer
from transformers import AutoModelForCausalLM, AutoModelForSequenceClassification, AutoTokenizer

GOLDENS = pathlib.Path("tests/goldens")
TEXT, PAIR = "the fox sees Anna Lee in Paris.", "a bird hears the light"
STEPS, SHARE = 16, 0.3


class Answer:
    """A number for the tokens of a text. `inputs` are the arguments of the model for one text, `own` the places of the tokens that may be
    removed, and `tables` the modules of the token embeddings: that of the decoder reads the text moved by one place."""

    def __init__(self, model, inputs, own, tables, value, reads, padding):
        self.model, self.inputs, self.own, self.tables, self.value, self.reads, self.padding = model, inputs, own, tables, value, reads, padding
        self.moved = None

    def run(self, inputs, move=None, **more):
        """Returns the outputs of the model; move(x, shift) replaces the embeddings of a table."""
        hooks = [table.register_forward_hook(lambda module, args, out, shift=shift: move(out, shift)) for table, shift in self.tables if move]
        try:
            return self.model(**inputs, **more)
        finally:
            for hook in hooks:
                hook.remove()

    def __call__(self, inputs, move=None):
        return self.value(self.run(inputs, move), inputs)

    def embeddings(self, ids):
        return self.tables[0][0](ids).detach()

    def products(self, move, rows):
        """Returns the products of the gradients at the moved embeddings and `rows` [T, C]."""
        leaves = []

        def leaf(x, shift):
            y = move(x.detach(), shift).clone().requires_grad_()
            leaves.append((y, shift))
            return y
        value = self(self.inputs, leaf)
        gradients = torch.autograd.grad(value, [y for y, _ in leaves])
        T = rows.shape[0]
        scores = torch.zeros(T, dtype=torch.float64)
        for gradient, (_, shift) in zip(gradients, leaves):
            scores[:T - shift] += (gradient[0, shift:].double() * rows[:T - shift].double()).sum(-1)
        return scores


def gradient_input(answer):
    return answer.products(lambda x, shift: x, answer.embeddings(answer.inputs["input_ids"])[0])


def integrated_gradients(answer):
    ids = answer.inputs["input_ids"]
    other = torch.zeros(ids.shape[-1], 1) if answer.padding is None else answer.embeddings(torch.full_like(ids, answer.padding))[0]
    difference = answer.embeddings(ids)[0] - other
    difference[[t for t in range(ids.shape[1]) if t not in answer.own]] = 0

    def at(share):
        def move(x, shift):
            y = x.clone()
            y[0, shift:] -= (1 - share) * difference[:ids.shape[1] - shift]
            return y
        return move
    scores = sum(answer.products(at((step + 0.5) / STEPS), difference) for step in range(STEPS)) / STEPS
    with torch.no_grad():
        return scores, answer(answer.inputs, at(0))


def rollout(answer):
    """The matrices of Abnar and Zuidema 2020; cross-attention is a further layer between the stacks."""
    with torch.no_grad():
        out = answer.run(answer.inputs, output_attentions=True)
    mean = lambda layers: [layer[0].double().mean(0) for layer in layers]
    half = lambda a: 0.5 * a + 0.5 * torch.eye(a.shape[0], dtype=torch.float64)
    T = answer.inputs["input_ids"].shape[1]
    reads = answer.reads(T)
    if getattr(out, "encoder_attentions", None) is None:
        product = torch.eye(T, dtype=torch.float64)
        for a in mean(out.attentions):
            product = half(a) @ product
        return reads @ product
    source = torch.eye(T, dtype=torch.float64)
    for a in mean(out.encoder_attentions):
        source = half(a) @ source
    own, other = torch.eye(T, dtype=torch.float64), torch.zeros(T, T, dtype=torch.float64)
    for a, cross in zip(mean(out.decoder_attentions), mean(out.cross_attentions)):
        own, other = half(a) @ own, half(a) @ other
        own, other = 0.5 * own, 0.5 * cross @ source + 0.5 * other
    moved = torch.cat([(reads @ own)[1:], torch.zeros(1, dtype=torch.float64)])
    return reads @ other + moved


def deletion(answer, scores, whole):
    count = min(max(math.ceil(SHARE * len(answer.own) - 1e-9), 1), len(answer.own) - 1)
    removed = sorted(answer.own, key=lambda t: -scores[t])[:count]
    kept = [t for t in range(len(scores)) if t not in removed]
    with torch.no_grad():
        value = answer({key: x[:, kept] for key, x in answer.inputs.items()})
    return {"removed": removed, "change": float(value - whole)}


def explanation(name, kind, answer, **about):
    with torch.no_grad():
        whole = answer(answer.inputs)
    integrated, baseline = integrated_gradients(answer)
    scores = [gradient_input(answer), integrated, rollout(answer)]
    return {"name": name, "kind": kind, **about, "steps": STEPS, "removed_share": SHARE, "baseline": "zero" if answer.padding is None else "padding",
            "value": float(whole), "gradient_input": scores[0].tolist(), "integrated_gradients": scores[1].tolist(),
            "baseline_value": float(baseline), "rollout": scores[2].tolist(), "deletions": [deletion(answer, x.tolist(), whole) for x in scores]}


def one_row(place):
    def reads(rows):
        weights = torch.zeros(rows, dtype=torch.float64)
        weights[place] = 1
        return weights
    return reads


def classifier(name, label, pair=None, padding=0):
    folder = GOLDENS / "classifiers" / name
    model = AutoModelForSequenceClassification.from_pretrained(folder, attn_implementation="eager").eval()
    tok = AutoTokenizer.from_pretrained(folder)
    encoding = tok(TEXT, pair, return_tensors="pt", return_special_tokens_mask=True)
    special = encoding.pop("special_tokens_mask")[0].tolist()
    inner = getattr(model, "model", None)
    both = hasattr(inner, "decoder") and hasattr(inner, "encoder")
    tables = [(inner.encoder.embed_tokens, 0), (inner.decoder.embed_tokens, 1)] if both else [(model.get_input_embeddings(), 0)]
    place = 0 if encoding["input_ids"][0, 0] == tok.cls_token_id and not both else -1
    answer = Answer(model, dict(encoding), [t for t, s in enumerate(special) if not s], tables,
                    lambda out, inputs: out.logits[0, model.config.label2id[label]], one_row(place), padding)
    about = {"folder": str(folder), "text": TEXT, "target": label}
    return explanation(name + (" pair" if pair else "") + (" zero" if padding is None else ""), "label", answer, **about,
                       **({"pair": pair} if pair else {}))


def next_token(name):
    folder = GOLDENS / name
    model = AutoModelForCausalLM.from_pretrained(folder, attn_implementation="eager").eval()
    ids = torch.tensor([[5, 3, 9, 2, 14, 7]]) % model.config.vocab_size
    inputs = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
    answer = Answer(model, inputs, list(range(ids.shape[1])), [(model.get_input_embeddings(), 0)],
                    lambda out, inputs: out.logits[0, -1].log_softmax(-1)[4], one_row(-1), None)
    return explanation(name, "token", answer, folder=str(folder), ids=ids[0].tolist(), target="4")


def similarity(name):
    folder = GOLDENS / name
    model = SentenceTransformer(str(folder), model_kwargs={"attn_implementation": "eager"}, device="cpu").eval()
    inner = model[0].auto_model
    text, other = "the fox sees the bird", "a bird hears the light"
    inputs = dict(model.tokenizer(text, return_tensors="pt", return_special_tokens_mask=True))
    special = inputs.pop("special_tokens_mask")[0].tolist()
    with torch.no_grad():
        to = model({**model.tokenizer(other, return_tensors="pt")})["sentence_embedding"][0]

    class Model:
        def __call__(self, output_attentions=False, **features):
            return inner(**features, output_attentions=True) if output_attentions else model(dict(features))
    # The mean of the rows and the last row, concatenated.
    reads = lambda rows: 0.5 * torch.full((rows,), 1 / rows, dtype=torch.float64) + 0.5 * one_row(-1)(rows)
    answer = Answer(Model(), inputs, [t for t, s in enumerate(special) if not s], [(inner.get_input_embeddings(), 0)],
                    lambda out, inputs: torch.cosine_similarity(out["sentence_embedding"][0], to, dim=0), reads, 0)
    return explanation(name, "similarity", answer, folder=str(folder), text=text, other=other)


def main():
    warnings.simplefilter("ignore")
    goldens = [classifier("texts", "neutral"), classifier("texts", "neutral", padding=None), classifier("texts", "entailment", PAIR),
               classifier("several", "old"), classifier("regression", "grade"), classifier("decoder", "entailment"),
               classifier("encoder_decoder", "neutral"), next_token("gpt2_relu"), similarity("sentence_model")]
    path = GOLDENS / "explanations.json"
    path.write_text("[\n" + ",\n".join(json.dumps(golden) for golden in goldens) + "\n]\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
