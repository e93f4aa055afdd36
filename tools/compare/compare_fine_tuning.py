#!/usr/bin/env python3
"""Fine-tunes a small T5 on pairs with transformers and PyTorch's AdamW, and with `fovea train --from`, and compares the losses step by
step.

Usage: compare_fine_tuning.py [--fovea PROGRAM] [--steps N]. Needs a Python with torch and transformers. All pairs are one batch, so that
their order does not matter. Exits with 1 if a loss differs by more than rounding explains."""
import argparse
import json
import pathlib
import random
import subprocess
import sys
import tempfile

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "goldens"))
from harness import add_program  # noqa: E402
import torch  # noqa: E402
import transformers  # noqa: E402
from tokenizers import Tokenizer, models, pre_tokenizers, processors  # noqa: E402

WORDS = [f"w{i}" for i in range(60)]
RATE, PAIRS, TOLERANCE = 1e-3, 24, 2e-4


def make_model(folder, kind):
    vocabulary = {word: i for i, word in enumerate(["<pad>", "</s>", "<unk>", *WORDS])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", 1)])
    transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, pad_token="<pad>", eos_token="</s>", unk_token="<unk>").save_pretrained(folder)
    torch.manual_seed(3)
    config = transformers.T5Config(vocab_size=len(vocabulary), d_model=48, d_kv=12, d_ff=96, num_layers=2, num_heads=4, dropout_rate=0.0,
                                   feed_forward_proj=kind, tie_word_embeddings=kind == "relu", decoder_start_token_id=0)
    model = transformers.T5ForConditionalGeneration(config)
    model.save_pretrained(folder)
    return model


def make_pairs(folder):
    generator = random.Random(4)
    pairs = []
    for _ in range(PAIRS):
        source = [generator.choice(WORDS) for _ in range(generator.randint(4, 9))]
        pairs.append((" ".join(source), " ".join(reversed(source))))
    for name, side in (("source", 0), ("target", 1)):
        (folder / f"{name}.txt").write_text("".join(pair[side] + "\n" for pair in pairs))
    return pairs


def their_losses(model, folder, pairs, steps):
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    sources = tokenizer([a for a, _ in pairs], padding=True, return_tensors="pt")
    labels = tokenizer([b for _, b in pairs], padding=True, return_tensors="pt").input_ids
    labels[labels == tokenizer.pad_token_id] = -100
    optimizer = torch.optim.AdamW(model.parameters(), lr=RATE, betas=(0.9, 0.99), eps=1e-8, weight_decay=0)
    losses = []
    for _ in range(steps):
        loss = model(**sources, labels=labels).loss
        losses.append(loss.item())
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    return losses


def our_losses(program, folder, steps):
    out = folder / "out"
    pairs = [str(folder / "source.txt"), str(folder / "target.txt")]
    subprocess.run([program, "train", "--pairs", *pairs, "--validation-pairs", *pairs, "--from", folder / "model", "--out", out, "--steps",
                    str(steps), "--batch-tokens", "100000", "--lr", str(RATE), "--schedule", "constant", "--warmup", "0", "--weight-decay", "0",
                    "--beta1", "0.9", "--beta2", "0.99", "--epsilon", "1e-8", "--clip", "1", "--label-smoothing", "0", "--evaluate-every", "0",
                    "--sample-every", "0", "--dtype", "fp32"],
                   check=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    lines = [json.loads(line) for line in (out / "log.jsonl").read_text().splitlines()]
    return [line["loss"] for line in lines if "loss" in line]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=40)
    add_program(parser)
    options = parser.parse_args()
    worst = 0.0
    for kind in ("relu", "gated-gelu"):
        with tempfile.TemporaryDirectory() as holder:
            folder = pathlib.Path(holder)
            model = make_model(folder / "model", kind)
            pairs = make_pairs(folder)
            theirs = their_losses(model, folder / "model", pairs, options.steps)
            ours = our_losses(options.fovea, folder, options.steps)
            if len(ours) != len(theirs):
                sys.exit(f"{kind}: {len(ours)} losses, expected {len(theirs)}")
            apart = [abs(a - b) / b for a, b in zip(ours, theirs)]
            worst = max(worst, *apart)
            print(f"T5 with {kind}: loss {theirs[0]:.6f} -> {theirs[-1]:.6f}, fovea {ours[0]:.6f} -> {ours[-1]:.6f}, "
                  f"difference at most {max(apart):.1e} in {options.steps} steps")
    return 1 if worst > TOLERANCE else 0


if __name__ == "__main__":
    sys.exit(main())
