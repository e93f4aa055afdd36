#!/usr/bin/env python3
"""Writes tests/goldens/replaced_tokens: a tiny ELECTRA generator and discriminator with shared embeddings, and for one batch the drawn
tokens, both losses and some gradients, as transformers and PyTorch compute them.

    python3 tools/goldens/make_replaced_tokens.py        (needs torch, transformers and safetensors)"""
from harness import GOLDENS, remove, shaken, write_tensors
import torch
from transformers import ElectraConfig, ElectraForMaskedLM, ElectraForPreTraining

OUT = GOLDENS / "replaced_tokens"
COMMON = {"vocab_size": 37, "embedding_size": 24, "num_hidden_layers": 1, "max_position_embeddings": 16, "hidden_dropout_prob": 0.0,
          "attention_probs_dropout_prob": 0.0, "pad_token_id": 0, "attn_implementation": "eager"}
ROWS, TOKENS, WEIGHT = 2, 9, 50.0


def draw(logits, number):
    """The first token whose cumulative probability exceeds the number."""
    probabilities = torch.softmax(logits.double(), -1)
    return int((probabilities.cumsum(-1) <= number).sum())


torch.manual_seed(3)
generator = shaken(ElectraForMaskedLM(ElectraConfig(**COMMON, hidden_size=12, num_attention_heads=1, intermediate_size=20)), 0.15)
model = shaken(ElectraForPreTraining(ElectraConfig(**COMMON, hidden_size=24, num_attention_heads=2, intermediate_size=40)), 0.15)
generator.electra.embeddings = model.electra.embeddings
generator.tie_weights()
original = torch.randint(3, 37, (ROWS, TOKENS))
masked = torch.rand(ROWS, TOKENS) < 0.4
ids = torch.where(masked, torch.full_like(original, 2), original)
labels = torch.where(masked, original, torch.full_like(original, -1))
numbers = torch.rand(ROWS, TOKENS)
# Some draws equal the original token.
logits = generator(input_ids=ids).logits
generator_loss = torch.nn.functional.cross_entropy(logits[masked], original[masked])
replaced = ids.clone()
for row, token in masked.nonzero().tolist():
    cumulative = torch.softmax(logits[row, token].detach().double(), -1).cumsum(-1)
    if (row + token) % 3 == 0:  # the middle of the original's interval
        end = cumulative[original[row, token]]
        numbers[row, token] = end - torch.softmax(logits[row, token].detach().double(), -1)[original[row, token]] / 2
    replaced[row, token] = draw(logits[row, token].detach(), float(numbers[row, token]))
is_replaced = replaced != original
z = model(input_ids=replaced).logits
detection_loss = torch.nn.functional.binary_cross_entropy_with_logits(z, is_replaced.float())
(generator_loss + WEIGHT * detection_loss).backward()
assert 0 < int(is_replaced.sum()) < int(masked.sum())
for part, name in ((generator, "generator"), (model, "model")):
    part.save_pretrained(OUT / name)
    remove(OUT / name, "generation_config.json")
write_tensors(OUT / "expected.safetensors", {
    "ids": ids.int(), "labels": labels.int(), "numbers": numbers, "replaced_ids": replaced.int(), "replaced": is_replaced.int(), "logits": z,
    "losses": torch.stack([generator_loss, detection_loss]),
    "grad.token": model.electra.embeddings.word_embeddings.weight.grad,
    "grad.projection": generator.electra.embeddings_project.weight.grad,
    "grad.position": model.electra.embeddings.position_embeddings.weight.grad,
    "grad.detector": model.discriminator_predictions.dense.weight.grad,
    "grad.predictions": generator.generator_predictions.dense.weight.grad})
