"""Trains a small model on a text file with a loss of one's own: the focal loss, in which a token that is already predicted
well counts less (Lin et al. 2017, eq. 4).

usage: python own_loss.py TEXT DIRECTORY [STEPS]
"""

import sys

import fovea
from fovea import ops


def focal(logits: fovea.Tensor, labels: fovea.Tensor) -> fovea.Tensor:
    log_p = ops.log_probability(logits, labels)  # [rows]
    rest = 1 - ops.exp(log_p)
    return -ops.sum(rest * rest * log_p)


if __name__ == "__main__":
    text, out = sys.argv[1:3]
    steps = int(sys.argv[3]) if len(sys.argv) > 3 else 200
    run = fovea.train(text, out, preset="tiny", steps=steps, loss=focal)
    print(f"cross-entropy of held-out text: {run.result.best_loss:.4f}")
