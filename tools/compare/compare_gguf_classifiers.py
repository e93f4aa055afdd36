#!/usr/bin/env python3
"""Checks classifiers in GGUF files: their labels, an adapter of PEFT on them, and the directories that they are converted to.

Usage: compare_gguf_classifiers.py [FAMILY...] [--fovea PROGRAM]. For each family, makes a tiny classifier with random weights and an adapter,
converts the classifier to a GGUF file and this back to a directory, and compares the probabilities of the file and of the file with the
adapter by fovea, and those of the directory by fovea and by transformers, with those of transformers for the original model. Prints a
line for each; exit code 1 if one differs by more than 1e-4. Needs torch, transformers and peft."""
import os
import pathlib
import sys
import tempfile

from compare_heads import ENCODERS, FAMILIES, TEXTS, TOLERANCE, arguments, fovea  # first: it finds the modules of tools/goldens
import torch
from harness import shaken
from make_classifiers import BERT, named, tokenizer, without_types
from peft import LoraConfig, get_peft_model
from transformers import AutoConfig, AutoModelForSequenceClassification, AutoTokenizer

LABELS = ["calm", "loud", "old"]
TARGETS = {"bert": ["query", "value"], "roberta": ["query", "value"], "modernbert": ["Wqkv", "Wo"], "qwen3": ["q_proj", "v_proj"]}


def random_model(family):
    """Returns a classifier that GGUF can hold, and its tokenizer."""
    torch.manual_seed(3)
    model = AutoModelForSequenceClassification.from_config(AutoConfig.for_model(family, **FAMILIES[family], **named(LABELS)), attn_implementation="eager")
    tok = tokenizer(**(BERT if family in ENCODERS else {}))
    return shaken(model, 0.2).eval(), tok if family == "bert" else without_types(tok)


def with_adapter(model, family, folder):
    """Adds an adapter with random weights, which trains the head too, and saves it."""
    adapted = get_peft_model(model, LoraConfig(task_type="SEQ_CLS", r=2, target_modules=TARGETS[family]))
    with torch.no_grad():
        for name, parameter in adapted.named_parameters():
            if "lora_B" in name:
                parameter.add_(torch.randn_like(parameter) * 0.3)
    adapted.save_pretrained(folder)
    return adapted.eval()


def probabilities(model, tok):
    with torch.no_grad():
        return [model(**tok(text, return_tensors="pt")).logits[0].softmax(0) for text in TEXTS]


def difference(program, wanted, path, *arguments):
    """Returns the largest difference of a probability from those of fovea for the model at `path`."""
    found = fovea(program, path, *TEXTS, "--top", 3, *arguments)
    return max(abs(float(p[LABELS.index(one["label"])]) - one["score"]) for p, each in zip(wanted, found) for one in each["labels"])


def differences(program, family):
    with tempfile.TemporaryDirectory() as parent:
        original, file, back, adapter = (pathlib.Path(parent) / name for name in ("original", "model.gguf", "back", "adapter"))
        model, tok = random_model(family)
        model.save_pretrained(original)
        tok.save_pretrained(original)
        for source, target in ((original, file), (file, back)):
            if os.spawnv(os.P_WAIT, program, [program, "convert", str(source), str(target)]) != 0:
                return {"convert": float("inf")}
        wanted = probabilities(model, tok)
        again, report = AutoModelForSequenceClassification.from_pretrained(back, output_loading_info=True)
        if report["missing_keys"] or report["unexpected_keys"]:
            return {f"transformers: {report['missing_keys']}, {report['unexpected_keys']}": float("inf")}
        theirs = probabilities(again.eval().float(), AutoTokenizer.from_pretrained(back))
        adapted = probabilities(with_adapter(model, family, adapter), tok)
        return {"file": difference(program, wanted, file), "adapter": difference(program, adapted, file, "--adapter", adapter),
                "directory": difference(program, wanted, back),
                "adapter of the directory": difference(program, adapted, back, "--adapter", adapter),
                f"transformers ({type(again).__name__})": max(float((a - b).abs().max()) for a, b in zip(wanted, theirs))}


def main():
    given = arguments(__doc__, TARGETS)
    worst = 0
    for family in given.families:
        for name, one in differences(given.fovea, family).items():
            worst = max(worst, one)
            print(f"{family:<12}{name:<55}{one:.1e}", flush=True)
    return 0 if worst <= TOLERANCE else 1


if __name__ == "__main__":
    sys.exit(main())
