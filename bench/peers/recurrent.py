"""Measures training steps of a language model of PyTorch's recurrent layers, in tokens per second.

The model is that of `fovea bench --train rnn`, `gru` or `lstm`: an embedding, two recurrent layers and a linear layer, all of one width."""
import argparse
import time

import torch
from pytorch import version_and_flags
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
    text = torch.randint(VOCABULARY, (1 << 20,))
    model = Recurrent(given.preset)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, betas=(0.9, 0.99), weight_decay=0.1)

    def step():
        starts = torch.randint(len(text) - CONTEXT - 1, (BATCH,)).tolist()
        ids = torch.stack([text[start : start + CONTEXT] for start in starts])
        labels = torch.stack([text[start + 1 : start + CONTEXT + 1] for start in starts])
        with torch.autocast("cpu", torch.bfloat16, enabled=given.dtype == "bf16"):
            loss = model(ids, labels)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()

    times = []
    for i in range(given.steps + 3):
        start = time.perf_counter()
        step()
        if i >= 3:
            times.append(time.perf_counter() - start)
    report(BATCH * CONTEXT / sorted(times)[len(times) // 2], *version_and_flags())


if __name__ == "__main__":
    main()
