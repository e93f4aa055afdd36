"""How PyTorch describes its build, and its training of language models."""
import torch
from result import median_seconds
from torch import nn


def version_and_flags():
    shown = [line.strip(" -") for line in torch.__config__.show().splitlines()]
    flags = [line for line in shown if line.startswith(("CPU capability", "OpenMP", "Intel(R) MKL-DNN"))]
    return torch.__version__, "; ".join(flags)


def training_speed(loss_of, model, vocabulary, context, batch, given):
    """Returns the tokens per second of steps on random text, which is cut into batches in the step: loss_of(ids, labels) and its gradients,
    clipping of the gradients' norm, AdamW."""
    text = torch.randint(vocabulary, (1 << 20,))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, betas=(0.9, 0.99), weight_decay=0.1)

    def step():
        starts = torch.randint(len(text) - context - 1, (batch,)).tolist()
        ids = torch.stack([text[start : start + context] for start in starts])
        labels = torch.stack([text[start + 1 : start + context + 1] for start in starts])
        with torch.autocast("cpu", torch.bfloat16, enabled=given.dtype == "bf16"):
            loss = loss_of(ids, labels)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()

    return batch * context / median_seconds(step, given.steps, warmup=5)
