#!/usr/bin/env python3
"""Compares the time of `fovea classify` with that of `fovea embed`, for the same encoder and the same decoder with each kind of head.

Usage: bench_classify.py [--fovea PROGRAM] [--lines N] [--runs N] [--threads N]. Writes models with random weights to .cache/bench_models:
an encoder of the size of all-MiniLM-L6-v2 and a decoder. Prints the user time and the wall time of the fastest of several runs, which
include the opening of the model, and their ratio to those of the vectors. A classifier has the head's product beside the layers'; a
masked language model also computes the probabilities of all tokens in the places of the masks."""
import argparse
import json
import os
import pathlib
import resource
import subprocess
import time

import bench_models
from bench_models import BERT, MODELS, ROOT

LABELS = {str(i): name for i, name in enumerate(("O", "B-PER", "I-PER"))}
# The classes, and the tensors that each adds to those of the encoder.
ENCODER_HEADS = {"labels": ("BertForSequenceClassification", {"classifier": [3, BERT["width"]]}),
                 "entities": ("BertForTokenClassification", {"classifier": [3, BERT["width"]]}),
                 "answers": ("BertForQuestionAnswering", {"qa_outputs": [2, BERT["width"]]}),
                 "masks": ("BertForMaskedLM", {"cls.predictions.transform.dense": [BERT["width"], BERT["width"]],
                                               "cls.predictions.transform.LayerNorm": [BERT["width"]]})}
DECODER = {"layers": 6, "width": 384, "heads": 6, "kv_heads": 2, "ffn": 1024, "context": 512}
CONTEXT = 40  # words of the context of each question


def shapes_of(folder):
    with open(folder / "model.safetensors", "rb") as file:
        header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
    return {name: tensor["shape"] for name, tensor in header.items() if name != "__metadata__"}


def with_head(base, architecture, tensors, prefix, bias=True):
    """Writes the model with a head for labels, and returns its directory."""
    folder = base.with_name(f"{base.name}-{architecture}")
    folder.mkdir(exist_ok=True)
    config = json.loads((base / "config.json").read_text())
    config["architectures"] = [architecture]
    if "qa_outputs" not in tensors and "MaskedLM" not in architecture:
        config |= {"id2label": LABELS, "label2id": {name: int(i) for i, name in LABELS.items()}}
    (folder / "config.json").write_text(json.dumps(config))
    shapes = {name if name.startswith("model.") else prefix + name: shape for name, shape in shapes_of(base).items()}
    for name, shape in tensors.items():
        if bias:
            bench_models.add_layer(shapes, name, shape)
        else:
            shapes[f"{name}.weight"] = shape
    if "MaskedLM" in architecture:
        shapes["cls.predictions.bias"] = [config["vocab_size"]]
    bench_models.write_safetensors(folder / "model.safetensors", shapes)
    (folder / "tokenizer.json").write_text((base / "tokenizer.json").read_text())
    return folder


def make_decoder(encoder):
    """Writes a decoder with the encoder's tokenizer, whose vectors are the states of the last token."""
    folder = MODELS / "decoder"
    vocabulary = json.loads((encoder / "config.json").read_text())["vocab_size"]
    bench_models.make_llama(folder, **DECODER, vocabulary=vocabulary)
    tokenizer = json.loads((encoder / "tokenizer.json").read_text())
    tokenizer["post_processor"] = None
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer))
    for name in ("modules.json", "1_Pooling/config.json"):
        (folder / name).parent.mkdir(exist_ok=True)
        text = (encoder / name).read_text()
        (folder / name).write_text(text.replace("pooling_mode_mean_tokens", "pooling_mode_lasttoken"))
    return folder


def fastest(runs, command):
    """Returns the least user time and the least wall time in seconds."""
    times = []
    for _ in range(runs):
        before, begin = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime, time.monotonic()
        subprocess.run([str(part) for part in command], check=True, stdout=subprocess.DEVNULL)
        times.append((resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before, time.monotonic() - begin))
    return tuple(min(column) for column in zip(*times))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fovea", default=os.environ.get("FOVEA_BIN", str(ROOT / "build/release/fovea")))
    parser.add_argument("--lines", type=int, default=1500)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--threads", type=int, default=1)
    given = parser.parse_args()
    MODELS.mkdir(parents=True, exist_ok=True)
    encoder = MODELS / "bert"
    words = bench_models.make_bert(encoder, **BERT)
    decoder = make_decoder(encoder)
    lines, masked, questions = MODELS / "classify.txt", MODELS / "masked.txt", MODELS / "questions.tsv"
    bench_models.make_lines(lines, words, given.lines, 5, CONTEXT)
    texts = lines.read_text().splitlines()
    masked.write_text("".join(text.rsplit(" ", 1)[0] + " [MASK]\n" for text in texts))
    questions.write_text("".join(f"{' '.join(text.split()[:2])}\t{' '.join(text.split()[2:])}\n" for text in texts))
    heads = {name: with_head(encoder, *head, "bert.") for name, head in ENCODER_HEADS.items()}
    decoder_labels = with_head(decoder, "LlamaForSequenceClassification", {"score": [3, DECODER["width"]]}, "", bias=False)
    files = {"masks": masked, "answers": questions}
    program = pathlib.Path(given.fovea)
    rows = [("encoder: vectors", [program, "embed", encoder, lines]),
            *((f"encoder: {name}", [program, "classify", folder, files.get(name, lines)]) for name, folder in heads.items()),
            ("decoder: vectors", [program, "embed", decoder, lines]), ("decoder: labels", [program, "classify", decoder_labels, lines])]
    print(f"{given.lines} texts, {given.threads} threads, fastest of {given.runs} runs")
    print(f"{'work':<20}{'user s':>9}{'wall s':>9}{'user / vectors':>16}")
    vectors = 0
    for name, command in rows:
        user, wall = fastest(given.runs, [*command, "--threads", given.threads])
        vectors = user if name.endswith("vectors") else vectors
        print(f"{name:<20}{user:>9.2f}{wall:>9.2f}{user / vectors:>16.2f}", flush=True)


if __name__ == "__main__":
    main()
