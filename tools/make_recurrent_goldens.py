#!/usr/bin/env python3
"""Writes tests/goldens/recurrent.json: the outputs and gradients of PyTorch's nn.RNN, nn.GRU and nn.LSTM for random numbers.

Needs torch (made with 2.x); run it in the root of the repository. The loss is the sum of y times `dy`."""
import json
import pathlib

import torch

torch.manual_seed(1)
golden = {}
for name, kind in (("rnn", torch.nn.RNN), ("gru", torch.nn.GRU), ("lstm", torch.nn.LSTM)):
    layer = kind(3, 5, batch_first=True)
    x = torch.randn(2, 6, 3, requires_grad=True)
    dy = torch.randn(2, 6, 5)
    y, _ = layer(x)
    (y * dy).sum().backward()
    tensors = {"x": x, "dy": dy, "y": y, "dx": x.grad}
    for parameter, value in layer.named_parameters():
        tensors[parameter] = value
        tensors["d" + parameter] = value.grad
    golden[name] = {key: {"shape": list(value.shape), "values": [float(f"{v:.9g}") for v in value.detach().flatten().tolist()]}
                    for key, value in tensors.items()}
pathlib.Path("tests/goldens/recurrent.json").write_text(json.dumps(golden, separators=(",", ":")) + "\n")
