#!/usr/bin/env python3
"""Writes tests/goldens/divergences.json: logits of a student and of a teacher, and the generalised Jensen-Shannon divergence of their rows with
labels and its gradient, by the function of TRL's GKDTrainer.

Usage: make_divergences.py TRL, the folder of the package trl (written with 1.16.0). Needs torch."""
import ast
import pathlib
import sys

import harness
from harness import GOLDENS
import torch
import torch.nn.functional as F

ROWS, CLASSES = 7, 11
CASES = [(beta, temperature) for beta in (0.0, 0.1, 0.5, 0.9, 1.0) for temperature in (1.0, 2.5)]


def function_of_trl(package):
    """Returns generalized_jsd_loss, without the imports of its module."""
    source = (pathlib.Path(package) / "experimental/gkd/gkd_trainer.py").read_text(encoding="utf-8")
    found = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.FunctionDef) and node.name == "generalized_jsd_loss"]
    found[0].decorator_list = []
    names = {"torch": torch, "F": F}
    exec(compile(ast.Module(body=found, type_ignores=[]), "gkd_trainer.py", "exec"), names)  # pylint: disable=exec-used
    return names["generalized_jsd_loss"]


def rounded(x):
    return [[round(number, 4) for number in row] for row in x.tolist()]


def main():
    harness.one_thread()
    loss = function_of_trl(sys.argv[1])
    torch.manual_seed(5)
    student, teacher = (torch.tensor(rounded(torch.randn(ROWS, CLASSES) * 3)) for _ in range(2))
    labels = torch.tensor([3, -100, 0, 10, -100, 7, 1])
    cases = []
    for beta, temperature in CASES:
        logits = student.clone().requires_grad_()
        value = loss(logits[None], teacher[None], labels[None], beta, temperature)
        value.backward()
        cases.append({"beta": beta, "temperature": temperature, "value": value.item(), "gradient": logits.grad.tolist()})
    golden = {"student": rounded(student), "teacher": rounded(teacher), "labels": labels.tolist(), "cases": cases}
    harness.write_json(GOLDENS / "divergences.json", golden)
    harness.report(GOLDENS / "divergences.json")


if __name__ == "__main__":
    main()
