#!/usr/bin/env python3
"""Compares the loss of a classifier that fovea trained with that of transformers, which also reads padded batches.

Usage: compare_labels.py DIR LABELS.jsonl [--fovea PROGRAM]. LABELS.jsonl has lines {"text", "label"} or {"text", "labels"}.
Prints "ok" or the difference; exit code 0 or 1."""
import argparse
import json
import pathlib
import subprocess
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "goldens"))
from harness import add_program  # noqa: E402
import torch  # noqa: E402
from transformers import AutoModelForSequenceClassification, AutoTokenizer  # noqa: E402

TOLERANCE = 1e-5  # of the loss: sums in a different order differ by about 1e-6


def targets_of(rows, config):
    """Returns the labels as the loss of transformers expects them."""
    if config.problem_type == "regression":
        return torch.tensor([float(row["label"]) for row in rows])
    if config.problem_type == "multi_label_classification":
        return torch.tensor([[float(name in row["labels"]) for _, name in sorted(config.id2label.items())] for row in rows])
    return torch.tensor([config.label2id[str(row["label"])] for row in rows])


def difference(program, folder, path):
    """Returns None, or the first difference."""
    with open(path, encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    found = json.loads(subprocess.run([program, "eval", folder, "--labels", path, "--json"], check=True, stdout=subprocess.PIPE).stdout)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model, report = AutoModelForSequenceClassification.from_pretrained(folder, output_loading_info=True)
    if report["missing_keys"] or report["unexpected_keys"]:
        return f"transformers reports missing {report['missing_keys']}, unexpected {report['unexpected_keys']}"
    model = model.eval().float()
    batch = [tokenizer(row["text"])["input_ids"] for row in rows]
    with torch.no_grad():
        logits = torch.cat([model(torch.tensor([ids])).logits for ids in batch])
        if model.config.problem_type == "multi_label_classification":
            loss = torch.nn.functional.binary_cross_entropy_with_logits(logits, targets_of(rows, model.config))
        elif model.config.problem_type == "regression":
            loss = torch.nn.functional.mse_loss(logits.squeeze(-1), targets_of(rows, model.config))
        else:
            loss = torch.nn.functional.cross_entropy(logits, targets_of(rows, model.config))
        if model.config.pad_token_id is not None and not model.config.is_encoder_decoder:
            longest = max(map(len, batch))
            ids = torch.tensor([row + [model.config.pad_token_id] * (longest - len(row)) for row in batch])
            mask = torch.tensor([[1] * len(row) + [0] * (longest - len(row)) for row in batch])
            apart = (model(ids, attention_mask=mask).logits - logits).abs().max()
            if not apart <= 1e-4:
                return f"the logits of transformers change by {apart:.1e} with padding"
    if abs(found["loss"] - float(loss)) > TOLERANCE * max(1, float(loss)):
        return f"the loss is {found['loss']:.8g}, that of transformers {float(loss):.8g}"
    print(f"{type(model).__name__}, {len(rows)} texts, loss {found['loss']:.6f}")
    return None


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder")
    parser.add_argument("labels")
    add_program(parser)
    options = parser.parse_args()
    wrong = difference(options.fovea, options.folder, options.labels)
    print(wrong or "ok")
    sys.exit(wrong is not None)
