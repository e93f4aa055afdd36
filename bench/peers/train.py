"""Measures training steps of a GPT with PyTorch, eager or compiled, in tokens per second.

The model is that of `fovea bench --train`: learned positions, LayerNorm before each sublayer, no biases, exact GELU, a head that shares
the weights of the embedding; AdamW, clipping of the gradient's norm, random text that is cut into batches in the step."""
import argparse

import torch
from pytorch import training_speed, version_and_flags
from result import report
from torch import nn
from torch.nn import functional

SHAPES = {  # layers, heads, width, context, batch, vocabulary
    "nano": (4, 4, 128, 64, 12, 65),
    "baby": (6, 6, 384, 256, 16, 65),
    "gpt2": (12, 12, 768, 1024, 4, 50257),
}


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.attention_norm = nn.LayerNorm(width, bias=False)
        self.query_key_value = nn.Linear(width, 3 * width, bias=False)
        self.attention_output = nn.Linear(width, width, bias=False)
        self.ffn_norm = nn.LayerNorm(width, bias=False)
        self.ffn_up = nn.Linear(width, 4 * width, bias=False)
        self.ffn_down = nn.Linear(4 * width, width, bias=False)

    def forward(self, x):
        batch, length, width = x.shape
        parts = self.query_key_value(self.attention_norm(x)).view(batch, length, 3, self.heads, width // self.heads)
        query, key, value = parts.permute(2, 0, 3, 1, 4)
        mixed = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.attention_output(mixed.transpose(1, 2).reshape(batch, length, width))
        return x + self.ffn_down(functional.gelu(self.ffn_up(self.ffn_norm(x))))


class Decoder(nn.Module):
    def __init__(self, layers, heads, width, context, vocabulary):
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, width)
        self.positions = nn.Embedding(context, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(width, bias=False)
        for parameter in self.parameters():
            if parameter.dim() > 1:
                nn.init.normal_(parameter, std=0.02)

    def forward(self, ids, labels):
        x = self.tokens(ids) + self.positions.weight
        for block in self.blocks:
            x = block(x)
        logits = functional.linear(self.norm(x), self.tokens.weight)
        return functional.cross_entropy(logits.flatten(0, 1).float(), labels.flatten())


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--preset", choices=SHAPES, required=True)
    options.add_argument("--dtype", choices=("fp32", "bf16"), required=True)
    options.add_argument("--steps", type=int, required=True)
    options.add_argument("--threads", type=int, required=True)
    options.add_argument("--compile", action="store_true")
    given = options.parse_args()
    torch.set_num_threads(given.threads)
    torch.manual_seed(1)
    layers, heads, width, context, batch, vocabulary = SHAPES[given.preset]
    model = Decoder(layers, heads, width, context, vocabulary)
    loss_of = torch.compile(model) if given.compile else model
    report(training_speed(loss_of, model, vocabulary, context, batch, given), *version_and_flags())


if __name__ == "__main__":
    main()
