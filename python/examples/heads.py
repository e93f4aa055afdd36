"""Mutes each head of a model in turn, and prints how much the loss of a text grows without it.

usage: python heads.py MODEL TEXT
"""

import sys

import numpy as np

import fovea


def loss(model: fovea.Model, ids: list[int], heads: list[tuple[int, int]]) -> float:
    logits = model.run(ids, mute=heads, what="logits")["logits"][0, :-1].astype(np.float64)
    log_p = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    return float(-log_p[np.arange(len(ids) - 1), ids[1:]].mean())


if __name__ == "__main__":
    model = fovea.load(sys.argv[1])
    ids = model.prompt_ids(sys.argv[2])
    whole = loss(model, ids, [])
    print(f"loss {whole:.4f}")
    for layer in range(model.spec.layers):
        grown = [loss(model, ids, [(layer, head)]) - whole for head in range(model.spec.heads)]
        print(f"layer {layer}: " + " ".join(f"{each:+.4f}" for each in grown))
