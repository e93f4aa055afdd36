"""Measures training steps of a language model of PyTorch's recurrent layers, in tokens per second.

The model is that of `fovea bench --train rnn`, `gru` or `lstm`: an embedding, two recurrent layers and a linear layer, all of one width."""
import argparse

import torch
from pytorch import training_speed, version_and_flags
from result import report
from torch import nn
from torch.nn import functional

LAYERS, WIDTH, CONTEXT, BATCH, VOCABULARY = 2, 256, 128, 32, 65


class Recurrent(nn.Module):
    def __init__(self, kind):
        super().__init__()
        self.encoder = nn.Embedding(VOCABULARY, WIDTH)
        self.rnn = {"rnn": nn.RNN, "gru": nn.GRU, "lstm": nn.LSTM}[kind](WIDTH, WIDTH, LAYERS, batch_first=True)
        self.decoder = nn.Linear(WIDTH, VOCABULARY)

    def forward(self, ids, labels):
        logits = self.decoder(self.rnn(self.encoder(ids))[0])
        return functional.cross_entropy(logits.flatten(0, 1).float(), labels.flatten())


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--preset", choices=("rnn", "gru", "lstm"), required=True)
    options.add_argument("--dtype", choices=("fp32", "bf16"), required=True)
    options.add_argument("--steps", type=int, required=True)
    options.add_argument("--threads", type=int, required=True)
    given = options.parse_args()
    torch.set_num_threads(given.threads)
    torch.manual_seed(1)
    model = Recurrent(given.preset)
    report(training_speed(model, model, VOCABULARY, CONTEXT, BATCH, given), *version_and_flags())


if __name__ == "__main__":
    main()
