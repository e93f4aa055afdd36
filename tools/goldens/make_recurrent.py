#!/usr/bin/env python3
"""Writes the results of PyTorch's nn.RNN, nn.GRU and nn.LSTM for random numbers: tests/goldens/recurrent.json has the outputs and gradients of one
layer, and the directories tests/goldens/{rnn,gru,lstm} have language models of three layers with their results.

Needs torch (made with 2.x) and safetensors. The loss of a layer is the sum of y times `dy`."""
from harness import GOLDENS, greedy, rounded, shaken, write_json, write_tensors
import torch
from safetensors.torch import save_file

VOCABULARY, WIDTH, LAYERS, TOKENS, NEW = 19, 6, 3, 11, 24


class RNNModel(torch.nn.Module):
    """The names of PyTorch's example of a word language model."""

    def __init__(self, kind):
        super().__init__()
        self.encoder = torch.nn.Embedding(VOCABULARY, WIDTH)
        self.rnn = kind(WIDTH, WIDTH, LAYERS, batch_first=True)
        self.decoder = torch.nn.Linear(WIDTH, VOCABULARY)

    def forward(self, ids):
        return self.decoder(self.rnn(self.encoder(ids))[0])

    def hidden(self, ids):
        """The embeddings, and the outputs of each layer."""
        states = [self.encoder(ids)]
        for i in range(LAYERS):
            layer = type(self.rnn)(WIDTH, WIDTH, batch_first=True)
            layer.load_state_dict({name.replace(f"_l{i}", "_l0"): value for name, value in self.rnn.state_dict().items() if name.endswith(f"_l{i}")})
            states.append(layer(states[-1])[0])
        return states


def write_model(name, kind):
    torch.manual_seed(5)
    model, folder = shaken(RNNModel(kind), 0.3), GOLDENS / name
    ids = torch.randint(3, VOCABULARY, (1, TOKENS))
    logits = model(ids)
    loss = torch.nn.functional.cross_entropy(logits[:, :-1].flatten(0, 1), ids[:, 1:].flatten())
    loss.backward()
    found = {"input_ids": ids, "attention_mask": torch.ones_like(ids), "labels": ids.clone(), "logits": logits, "loss": loss.reshape(1)}
    found |= {f"hidden.{i}": state for i, state in enumerate(model.hidden(ids))}
    found |= {f"grad.{n}": p.grad for n, p in model.named_parameters()}
    found["greedy"] = greedy(model, ids, NEW)
    folder.mkdir(exist_ok=True)
    config = {"model_type": name, "vocab_size": VOCABULARY, "hidden_size": WIDTH, "num_layers": LAYERS, "max_position_embeddings": 64,
              "batch_first": True}
    write_json(folder / "config.json", config, indent=2)
    save_file(model.state_dict(), folder / "model.safetensors", metadata={"format": "pt"})
    write_tensors(folder / "expected.safetensors", found)


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
    golden[name] = {key: {"shape": list(value.shape), "values": rounded(value)}
                    for key, value in tensors.items()}
write_json(GOLDENS / "recurrent.json", golden, separators=(",", ":"))
for name, kind in (("rnn", torch.nn.RNN), ("gru", torch.nn.GRU), ("lstm", torch.nn.LSTM)):
    write_model(name, kind)
