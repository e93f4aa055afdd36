#!/usr/bin/env python3
"""Writes tests/goldens/optimizers.json: weights after one and after five steps of optimisers with given gradients, in double precision.

SGD, Muon, AdamW and Adafactor are PyTorch's (torch.optim), Adafactor without a relative rate is transformers', and Lion is the formula of Chen et
al. 2023, algorithm 2. Muon computes its products in the type of the weights instead of bf16. Needs torch (made with 2.15) and transformers (5.24)."""
from unittest import mock

from harness import GOLDENS, rounded, write_json
import torch
from transformers.optimization import Adafactor

STEPS, KEPT = 5, (1, 5)
SHAPES = {"wide": (4, 9), "tall": (9, 4), "embedding": (7, 3), "gain": (6,)}
DECAYED = ("wide", "tall", "embedding")


class Lion(torch.optim.Optimizer):
    def __init__(self, parameters, lr, betas, weight_decay):
        super().__init__(parameters, {"lr": lr, "betas": betas, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            beta1, beta2 = group["betas"]
            for p in group["params"]:
                m = self.state[p].setdefault("m", torch.zeros_like(p))
                direction = (beta1 * m + (1 - beta1) * p.grad).sign() + group["weight_decay"] * p
                p -= group["lr"] * direction
                self.state[p]["m"] = beta2 * m + (1 - beta2) * p.grad


def groups(weights, names, **options):
    """The parameters of these names in two groups: only those of DECAYED decay."""
    parts = [([weights[n] for n in names if (n in DECAYED) == decays], decays) for decays in (True, False)]
    return [{"params": part, "weight_decay": 0.1 if decays else 0.0, **options} for part, decays in parts if part]


def adamw(weights, names):
    return torch.optim.AdamW(groups(weights, names), lr=0.02, betas=(0.9, 0.99), eps=1e-8)


def muon(scale, rate, nesterov, momentum):
    def make(weights):
        hidden = torch.optim.Muon([weights["wide"], weights["tall"]], lr=0.02 * rate, weight_decay=0.1, momentum=momentum,
                                  nesterov=nesterov, adjust_lr_fn=scale)
        return [hidden, adamw(weights, ["embedding", "gain"])]
    return make


OPTIMIZERS = {
    "adamw": lambda w: [adamw(w, list(w))],
    "sgd": lambda w: [torch.optim.SGD(groups(w, w), lr=0.02, momentum=0.9)],
    "sgd_nesterov": lambda w: [torch.optim.SGD(groups(w, w), lr=0.02, momentum=0.9, nesterov=True)],
    "sgd_plain": lambda w: [torch.optim.SGD(groups(w, w), lr=0.02)],
    "lion": lambda w: [Lion(groups(w, w), lr=0.02, betas=(0.9, 0.99), weight_decay=0.1)],
    "adafactor": lambda w: [torch.optim.Adafactor(groups(w, w), lr=0.02)],
    "adafactor_absolute": lambda w: [Adafactor(groups(w, w), lr=0.02, scale_parameter=False, relative_step=False)],
    "muon": muon("match_rms_adamw", 1, True, 0.95),
    "muon_spectral": muon("original", 3, False, 0.8),
}


def main():
    torch.manual_seed(3)
    draw = lambda scale: {name: scale * torch.randn(shape) for name, shape in SHAPES.items()}
    initial, gradients = draw(0.5), [draw(1.0) for _ in range(STEPS)]
    flat = lambda tensors: {name: rounded(x) for name, x in tensors.items()}
    golden = {"initial": flat(initial), "gradients": [flat(g) for g in gradients], "weights": {}}
    for name, make in OPTIMIZERS.items():
        weights = {n: torch.nn.Parameter(torch.tensor(golden["initial"][n], dtype=torch.float64).view(SHAPES[n])) for n in SHAPES}
        optimizers = make(weights)
        kept = {}
        for step in range(STEPS):
            for n, p in weights.items():
                p.grad = torch.tensor(golden["gradients"][step][n], dtype=torch.float64).view(SHAPES[n])
            with mock.patch.object(torch, "bfloat16", torch.float64):
                for optimizer in optimizers:
                    optimizer.step()
            if step + 1 in KEPT:
                kept[str(step + 1)] = flat(weights)
        golden["weights"][name] = kept
    write_json(GOLDENS / "optimizers.json", golden, separators=(",", ":"))


if __name__ == "__main__":
    main()
