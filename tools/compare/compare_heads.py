#!/usr/bin/env python3
"""Compares the labels, entities, answers and candidates of fovea with those of transformers, for every family and every head of it.

Usage: compare_heads.py [FAMILY...] [--fovea PROGRAM]. Makes a tiny model with random weights of each class, and prints a line for each:
the largest difference of a score, "refused" if fovea refuses the model, or "-" if transformers has no such class. Exit code 1 if a
result differs by more than 1e-4. Needs torch and transformers."""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "goldens"))
from harness import add_program, quiet, shaken  # noqa: E402
import torch  # noqa: E402
from make_classifiers import BERT, PIECES, TAGS, named, probabilities, tokenizer, without_types  # noqa: E402
from transformers import (AutoConfig, AutoModelForMaskedLM, AutoModelForQuestionAnswering, AutoModelForSequenceClassification,  # noqa: E402
                          AutoModelForTokenClassification, pipeline)

TOLERANCE = 1e-4
V = len(PIECES) + 5
SIZES = {"vocab_size": V, "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 24,
         "max_position_embeddings": 64, "pad_token_id": 0}
DECODER = {**SIZES, "num_key_value_heads": 1, "bos_token_id": None, "eos_token_id": None, "tie_word_embeddings": False}
GPT = {"vocab_size": V, "pad_token_id": 0, "bos_token_id": None, "eos_token_id": None}
ENDS = {"pad_token_id": 0, "bos_token_id": 2, "eos_token_id": 3, "decoder_start_token_id": 3}
# The arguments of a tiny config by the model type.
FAMILIES = {
    "bert": SIZES, "electra": {**SIZES, "embedding_size": 12}, "roberta": {**SIZES, "max_position_embeddings": 65}, "mpnet": SIZES,
    "camembert": {**SIZES, "max_position_embeddings": 65}, "data2vec-text": {**SIZES, "max_position_embeddings": 65},
    "roberta-prelayernorm": {**SIZES, "max_position_embeddings": 65}, "albert": {**SIZES, "embedding_size": 12},
    "roformer": {**SIZES, "embedding_size": 12}, "rembert": {**SIZES, "input_embedding_size": 12, "output_embedding_size": 20},
    "jina_embeddings_v3": SIZES, "nomic_bert": SIZES, "gte": SIZES, "eurobert": SIZES,
    "distilbert": {"vocab_size": V, "dim": 16, "n_layers": 2, "n_heads": 2, "hidden_dim": 24, "max_position_embeddings": 64, "pad_token_id": 0},
    "modernbert": {**SIZES, "num_hidden_layers": 3, "local_attention": 8, "bos_token_id": 2, "eos_token_id": 3, "cls_token_id": 2, "sep_token_id": 3},
    "deberta-v2": {**SIZES, "relative_attention": True, "position_buckets": 8, "pos_att_type": ["c2p", "p2c"], "share_att_key": True},
    "llama": DECODER, "mistral": DECODER, "mixtral": {**DECODER, "num_local_experts": 4}, "qwen2": DECODER, "qwen3": {**DECODER, "head_dim": 8},
    "qwen3_moe": {**DECODER, "head_dim": 8, "num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 12},
    "gemma2": {**DECODER, "head_dim": 8, "tie_word_embeddings": True}, "gemma3_text": {**DECODER, "head_dim": 8, "tie_word_embeddings": True},
    "phi3": DECODER, "olmo2": DECODER, "starcoder2": DECODER,
    "opt": {**GPT, "hidden_size": 16, "word_embed_proj_dim": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "ffn_dim": 24, "max_position_embeddings": 64},
    "gpt2": {**GPT, "n_embd": 16, "n_layer": 2, "n_head": 2, "n_positions": 64}, "bloom": {**GPT, "hidden_size": 16, "n_layer": 2, "n_head": 2},
    "gpt_neox": {**SIZES, **GPT, "rotary_pct": 0.5, "tie_word_embeddings": False},
    "bart": {**ENDS, "vocab_size": V, "d_model": 16, "encoder_layers": 1, "decoder_layers": 1, "encoder_attention_heads": 2, "decoder_attention_heads": 2,
             "encoder_ffn_dim": 24, "decoder_ffn_dim": 24, "max_position_embeddings": 64},
    "t5": {**ENDS, "vocab_size": V, "d_model": 16, "d_kv": 8, "d_ff": 24, "num_layers": 2, "num_heads": 2},
}
ENCODERS = {"bert", "electra", "roberta", "mpnet", "distilbert", "modernbert", "camembert", "data2vec-text", "roberta-prelayernorm", "albert",
            "roformer", "rembert", "jina_embeddings_v3", "nomic_bert", "gte", "eurobert", "deberta-v2", "bart", "t5"}
QUESTION = "Who sees it?"
# Without unknown words: MPNet treats token 1, which is [UNK] here, as padding.
TEXTS = ["the fox sees Anna Lee in Paris.", "night", "a bird hears the falling lights and Anna Lee?"]


class Refused(Exception):
    pass


def fovea(program, *arguments):
    done = subprocess.run([program, "classify", *map(str, arguments), "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if done.returncode:
        raise Refused(done.stderr.decode().strip().splitlines()[-1])
    return [json.loads(line) for line in done.stdout.splitlines()]


def text_labels(program, folder, model, tok):
    classify = pipeline("text-classification", model=model, tokenizer=tok)
    worst = 0
    for text, found in zip(TEXTS, fovea(program, folder, *TEXTS, "--top", 9)):
        wanted = {one["label"]: one["score"] for one in classify(text, top_k=None)}
        worst = max([worst] + [abs(wanted[one["label"]] - one["score"]) for one in found["labels"]])
    return worst


def entities(program, folder, model, tok):
    find = pipeline("token-classification", model=model, tokenizer=tok)
    worst = 0
    for text, found in zip(TEXTS, fovea(program, folder, *TEXTS, "--joining", "simple")):
        wanted = find(text, aggregation_strategy="simple")
        places = lambda list_: [(e["entity_group"], e["start"], e["end"]) for e in list_]
        if places(wanted) != places(found["entities"]):
            return float("inf")
        worst = max([worst] + [abs(a["score"] - b["score"]) for a, b in zip(wanted, found["entities"])])
    return worst


def best_answer(program, folder, model, tok):
    """The best span of at most 15 tokens, as the pipeline of transformers 4 scored it; equal answers are added."""
    context = TEXTS[2]
    found = fovea(program, folder, QUESTION, "--context", context)[0]["answers"][0]
    read = tok(QUESTION, context, return_tensors="pt")
    inside = torch.tensor([part == 1 for part in read.sequence_ids(0)])
    allowed = inside | (read["input_ids"][0] == (-1 if tok.cls_token_id is None else tok.cls_token_id))
    with torch.no_grad():
        out = model(**read)
    begin, end = (probabilities(x[0], allowed.numpy()) for x in (out.start_logits, out.end_logits))
    scores, encoding = {}, read.encodings[0]
    spans = sorted(((begin[a] * end[b], a, b) for a in range(len(inside)) for b in range(a, min(a + 15, len(inside))) if inside[a] and inside[b]), reverse=True)
    for score, a, b in spans[:12]:
        place = encoding.word_to_chars(encoding.token_to_word(a), 1)[0], encoding.word_to_chars(encoding.token_to_word(b), 1)[1]
        key = context[place[0]:place[1]].lower()
        scores[key] = scores.get(key, 0) + score
    text, score = max(scores.items(), key=lambda one: one[1])
    return abs(score - found["score"]) if text == found["answer"].lower() else float("inf")


def candidates(program, folder, model, tok):
    fill = pipeline("fill-mask", model=model, tokenizer=tok, top_k=5)
    worst = 0
    for text in ("the [MASK] sees", "a [MASK] hears the [MASK]."):
        found, wanted = fovea(program, folder, text)[0]["masks"], fill(text)
        for ours, theirs in zip(found, wanted if isinstance(wanted[0], list) else [wanted]):
            if [one["token"] for one in ours] != [one["token"] for one in theirs]:
                return float("inf")
            worst = max([worst] + [abs(a["score"] - b["score"]) for a, b in zip(ours, theirs)])
    return worst


HEADS = {"labels": (AutoModelForSequenceClassification, text_labels, named(["calm", "loud", "old"])),
         "entities": (AutoModelForTokenClassification, entities, named(TAGS)),
         "answers": (AutoModelForQuestionAnswering, best_answer, {}),
         "masks": (AutoModelForMaskedLM, candidates, {})}


def largest_difference(program, family, head):
    """Returns the difference; None if transformers has no such class."""
    auto, compare, more = HEADS[head]
    config = AutoConfig.for_model(family, **FAMILIES[family], **more)
    torch.manual_seed(3)
    try:
        model = auto.from_config(config, attn_implementation="eager")
    except ValueError as error:
        if "Unrecognized configuration class" not in str(error):
            raise
        return None
    shaken(model, 0.2).eval()
    tok = tokenizer(**(BERT if family in ENCODERS else {}))
    if family != "bert" and family != "electra":
        tok = without_types(tok)
    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder)
        tok.save_pretrained(folder)
        return compare(program, folder, model, tok)


def arguments(description, families):
    """Returns the families that the command line names, and the program."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("families", nargs="*", default=list(families))
    add_program(parser)
    quiet()
    return parser.parse_args()


def main():
    given = arguments(__doc__, FAMILIES)
    worst = 0
    for family in given.families:
        for head in HEADS:
            try:
                difference = largest_difference(given.fovea, family, head)
            except Refused as refusal:
                print(f"{family:<14}{head:<10}refused: {refusal}", flush=True)
                continue
            if difference is not None:
                worst = max(worst, difference)
            print(f"{family:<14}{head:<10}{'-' if difference is None else f'{difference:.1e}'}", flush=True)
    return 0 if worst <= TOLERANCE else 1


if __name__ == "__main__":
    sys.exit(main())
