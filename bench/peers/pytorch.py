"""How PyTorch describes its build."""
import torch


def version_and_flags():
    shown = [line.strip(" -") for line in torch.__config__.show().splitlines()]
    flags = [line for line in shown if line.startswith(("CPU capability", "OpenMP", "Intel(R) MKL-DNN"))]
    return torch.__version__, "; ".join(flags)
