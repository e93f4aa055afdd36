"""The sentence embedder that PyTorch, ONNX Runtime and OpenVINO run: a BERT with the mean of its last layer, and its batches."""
import pathlib

import numpy
import torch
from tokenizers import Tokenizer
from transformers import AutoModel

BATCH = 32


class Encoder(torch.nn.Module):
    """Returns a vector for each sentence. Exporters can read it: the mask is an addend, not a function of the library."""

    def __init__(self, folder):
        super().__init__()
        self.bert = AutoModel.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager").eval()

    def forward(self, ids, mask, types):
        x = self.bert.embeddings(input_ids=ids, token_type_ids=types)
        addend = (1.0 - mask[:, None, None, :].to(x.dtype)) * -1e9
        for layer in self.bert.encoder.layer:
            x = layer(x, addend)
            x = x[0] if isinstance(x, tuple) else x
        weights = mask[:, :, None].to(x.dtype)
        return (x * weights).sum(1) / weights.sum(1)


def read_lines(path):
    return sorted(pathlib.Path(path).read_text(encoding="utf-8").splitlines(), key=len)


def open_tokenizer(folder):
    tokenizer = Tokenizer.from_file(f"{folder}/tokenizer.json")
    tokenizer.enable_padding(pad_id=tokenizer.token_to_id("[PAD]") or 0, pad_token="[PAD]")
    return tokenizer


def batches(tokenizer, lines):
    """Yields ids, mask and types of batches of lines, which are ordered by length."""
    for i in range(0, len(lines), BATCH):
        encoded = tokenizer.encode_batch(lines[i : i + BATCH])
        ids = numpy.array([each.ids for each in encoded], dtype=numpy.int64)
        mask = numpy.array([each.attention_mask for each in encoded], dtype=numpy.int64)
        yield ids, mask, numpy.zeros_like(ids)


def example(tokenizer):
    return tuple(map(torch.from_numpy, next(batches(tokenizer, ["a b c", "a longer sentence"]))))
