#!/usr/bin/env python3
"""Writes tests/goldens/explanations.json: attributions of tokens and deletion tests, computed with PyTorch for tiny models in tests/goldens.

Needs torch, transformers (made with 5.24) and sentence-transformers. A hook replaces the outputs
of the token embeddings, so that the gradients are those of PyTorch; attention weights are those of transformers."""
import json
import math

from harness import GOLDENS, ROOT, quiet, write_lines
import torch
from sentence_transformers import SentenceTransformer
from transformers import (AutoModelForCausalLM, AutoModelForMaskedLM, AutoModelForQuestionAnswering, AutoModelForSequenceClassification,
                          AutoModelForTokenClassification, AutoTokenizer, pipeline)

TEXT, PAIR = "the fox sees Anna Lee in Paris.", "a bird hears the light"
STEPS, SHARE = 16, 0.3


class Answer:
    """A number for the tokens of a text. `inputs` are the arguments of the model for one text, `own` the places of the text's own tokens,
    and `tables` the modules of the token embeddings: that of the decoder reads the text moved by one place. `places` are those that the
    answer is about, which are never removed: value() gets their places in the shorter text."""

    def __init__(self, model, inputs, own, tables, value, reads, padding, places=()):
        self.model, self.inputs, self.own, self.tables, self.value, self.reads, self.padding = model, inputs, own, tables, value, reads, padding
        self.places = list(places)
        self.moved = None

    def run(self, inputs, move=None, **more):
        """Returns the outputs of the model; move(x, shift) replaces the embeddings of a table."""
        hooks = [table.register_forward_hook(lambda module, args, out, shift=shift: move(out, shift)) for table, shift in self.tables if move]
        try:
            return self.model(**inputs, **more)
        finally:
            for hook in hooks:
                hook.remove()

    def __call__(self, inputs, move=None, places=None):
        return self.value(self.run(inputs, move), self.places if places is None else places)

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
    removable = [t for t in answer.own if t not in answer.places]
    count = min(max(math.ceil(SHARE * len(removable) - 1e-9), 1), len(removable) - 1)
    removed = sorted(removable, key=lambda t: -scores[t])[:count]
    kept = [t for t in range(len(scores)) if t not in removed]
    with torch.no_grad():
        value = answer({key: x[:, kept] for key, x in answer.inputs.items()}, places=[kept.index(t) for t in answer.places])
    return {"removed": removed, "change": float(value - whole)}


def explanation(name, kind, answer, **about):
    with torch.no_grad():
        whole = answer(answer.inputs)
    integrated, baseline = integrated_gradients(answer)
    scores = [gradient_input(answer), integrated, rollout(answer)]
    about["folder"] = str(about["folder"].relative_to(ROOT))
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
                    lambda out, places: out.logits[0, model.config.label2id[label]], one_row(place), padding)
    about = {"folder": folder, "text": TEXT, "target": label}
    return explanation(name + (" pair" if pair else "") + (" zero" if padding is None else ""), "label", answer, **about,
                       **({"pair": pair} if pair else {}))


def rows_of(places):
    def reads(rows):
        return sum(one_row(place)(rows) for place in places) / len(places)
    return reads


def encoded(folder, *texts):
    """Returns the inputs of a BERT, the places of the texts' own tokens, and the tokenizer."""
    tok = AutoTokenizer.from_pretrained(folder)
    encoding = tok(*texts, return_tensors="pt", return_special_tokens_mask=True)
    special = encoding.pop("special_tokens_mask")[0].tolist()
    return dict(encoding), [t for t, s in enumerate(special) if not s], tok


def masked_word(text, number):
    """The log-probability of the most probable token in the place of mask `number`."""
    folder = GOLDENS / "classifiers" / "masks"
    model = AutoModelForMaskedLM.from_pretrained(folder, attn_implementation="eager").eval()
    inputs, own, tok = encoded(folder, text)
    ids = inputs["input_ids"][0].tolist()
    places = [t for t, token in enumerate(ids) if token == tok.mask_token_id]
    own = [t for t in own if t not in places]
    with torch.no_grad():
        best = int(model(**inputs).logits[0, places[number]].argmax())
    answer = Answer(model, inputs, own, [(model.get_input_embeddings(), 0)],
                    lambda out, at: out.logits[0, at[0]].log_softmax(-1)[best], one_row(places[number]), 0, [places[number]])
    return explanation(f"mask {number}", "result", answer, folder=folder, text=text, result=number, found=tok.convert_ids_to_tokens(best))


def entity(text, number):
    """The mean of the logits of an entity's tokens; each has the most probable label with the entity's name."""
    folder = GOLDENS / "classifiers" / "words"
    model = AutoModelForTokenClassification.from_pretrained(folder, attn_implementation="eager").eval()
    inputs, own, tok = encoded(folder, text)
    found = pipeline("token-classification", model=model, tokenizer=tok, aggregation_strategy="simple")(text)[number]
    offsets = tok(text, return_offsets_mapping=True)["offset_mapping"]
    places = [t for t in own if offsets[t][0] >= found["start"] and offsets[t][1] <= found["end"]]
    with torch.no_grad():
        best = model(**inputs).logits[0].argmax(-1).tolist()
    labels = [best[t] for t in places]
    answer = Answer(model, inputs, own, [(model.get_input_embeddings(), 0)],
                    lambda out, at: sum(out.logits[0, t, label] for t, label in zip(at, labels)) / len(at), rows_of(places), 0, places)
    return explanation(f"entity {number}", "result", answer, folder=folder, text=text, result=number, found=found["entity_group"])


def span(question, context):
    """The logit of the first token of the best answer to begin it, plus that of its last token to end it: of all spans with its text, the
    most probable one."""
    folder = GOLDENS / "classifiers" / "answers"
    model = AutoModelForQuestionAnswering.from_pretrained(folder, attn_implementation="eager").eval()
    inputs, own, tok = encoded(folder, question, context)
    encoding = tok(question, context).encodings[0]
    text = json.loads((folder / "expected.json").read_text(encoding="utf-8"))["best"][0][0]["answer"]

    def words(first, last):
        place = encoding.word_to_chars(encoding.token_to_word(first), 1)[0], encoding.word_to_chars(encoding.token_to_word(last), 1)[1]
        return context[place[0]:place[1]]
    inside = [t for t, part in enumerate(encoding.sequence_ids) if part == 1]
    with torch.no_grad():
        out = model(**inputs)
    begin, end = out.start_logits[0].tolist(), out.end_logits[0].tolist()
    first, last = max(((a, b) for a in inside for b in inside if a <= b < a + 15 and words(a, b) == text), key=lambda s: begin[s[0]] + end[s[1]])
    answer = Answer(model, inputs, own, [(model.get_input_embeddings(), 0)],
                    lambda out, at: out.start_logits[0, at[0]] + out.end_logits[0, at[-1]], rows_of([first, last]), 0, range(first, last + 1))
    return explanation("span", "result", answer, folder=folder, text=question, pair=context, result=0, found=text)


def next_token(name):
    folder = GOLDENS / name
    model = AutoModelForCausalLM.from_pretrained(folder, attn_implementation="eager").eval()
    ids = torch.tensor([[5, 3, 9, 2, 14, 7]]) % model.config.vocab_size
    inputs = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
    answer = Answer(model, inputs, list(range(ids.shape[1])), [(model.get_input_embeddings(), 0)],
                    lambda out, places: out.logits[0, -1].log_softmax(-1)[4], one_row(-1), None)
    return explanation(name, "token", answer, folder=folder, ids=ids[0].tolist(), target="4")


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
                    lambda out, places: torch.cosine_similarity(out["sentence_embedding"][0], to, dim=0), reads, 0)
    return explanation(name, "similarity", answer, folder=folder, text=text, other=other)


def main():
    quiet()
    goldens = [classifier("texts", "neutral"), classifier("texts", "neutral", padding=None), classifier("texts", "entailment", PAIR),
               classifier("several", "old"), classifier("regression", "grade"), classifier("decoder", "entailment"),
               classifier("encoder_decoder", "neutral"), next_token("gpt2_relu"), similarity("sentence_model"),
               masked_word("the fox [MASK] Anna Lee in Paris.", 0), masked_word("a [MASK] hears the [MASK] at night.", 1),
               entity(TEXT, 0), entity(TEXT, 1), span("Who sees it?", TEXT)]
    write_lines(GOLDENS / "explanations.json", goldens)


if __name__ == "__main__":
    main()
