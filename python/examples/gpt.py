"""Trains a GPT on the bytes of a text file, and prints a sample of it.

usage: python gpt.py TEXT [STEPS]
"""

import pathlib
import sys

import numpy as np

import fovea
from fovea import nn, ops

BATCH, CONTEXT, WIDTH, BYTES = 12, 64, 128, 256


class GPT:
    """The layers of GPT-2 in small, on an embedding that is also the output's matrix."""

    def __init__(self, seed: int) -> None:
        spec = fovea.Spec("nano", vocabulary=BYTES, context=CONTEXT, width=WIDTH, layers=4, heads=4)
        self.stack = nn.stack(spec, seed)
        self.table = nn.Parameter(fovea.normal([BYTES, WIDTH], 0.02, seed))
        self.parameters = [("table", self.table), *self.stack.parameters]

    def hidden(self, ids: fovea.Tensor, pass_: nn.Pass) -> fovea.Tensor:
        return self.stack(ops.embedding(ids, self.table.value), pass_)

    def loss(self, ids: fovea.Tensor, targets: fovea.Tensor, pass_: nn.Pass) -> fovea.Tensor:
        return ops.linear_cross_entropy(self.hidden(ids, pass_), self.table.value, None, targets)

    def logits(self, ids: fovea.Tensor) -> fovea.Tensor:
        return ops.linear(self.hidden(ids, nn.Pass()), self.table.value)


def train(model: GPT, text: np.ndarray, steps: int) -> None:
    optimizer = nn.Optimizer(model.parameters)
    random = np.random.default_rng(2)
    for step in range(steps):
        starts = random.integers(0, len(text) - CONTEXT - 1, BATCH)
        windows = np.stack([text[start : start + CONTEXT + 1] for start in starts])
        ids, targets = (
            fovea.Tensor(np.ascontiguousarray(w)) for w in (windows[:, :-1], windows[:, 1:])
        )
        loss = model.loss(ids, targets, nn.Pass(compute="bfloat16", training=True, step=step))
        if step % 100 == 0:
            print(f"step {step}: loss {loss.item():.4f}", file=sys.stderr)
        loss.backward()
        optimizer.step(1e-3 * (1 - 0.9 * step / steps))  # the learning rate falls to a tenth


def sample(model: GPT, tokens: int) -> str:
    random = np.random.default_rng(3)
    ids = [ord("\n")]
    with fovea.no_gradient():
        for _ in range(tokens):
            logits = model.logits(fovea.Tensor([ids[-CONTEXT:]])).numpy()[0, -1] / 0.8
            p = np.exp(logits - logits.max())
            ids.append(int(random.choice(BYTES, p=p / p.sum())))
    return bytes(ids[1:]).decode(errors="replace")


if __name__ == "__main__":
    text = np.frombuffer(pathlib.Path(sys.argv[1]).read_bytes(), np.uint8).astype(np.int32)
    model = GPT(seed=1)
    train(model, text, int(sys.argv[2]) if len(sys.argv) > 2 else 1000)
    print(sample(model, 300))
