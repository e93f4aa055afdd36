"""Measures a ViT on batches of 8 random images with PyTorch, ONNX Runtime or OpenVINO, or its training with PyTorch, in images per second."""
import argparse
import os
import pathlib

os.environ["HF_HUB_OFFLINE"] = "1"

import torch
from result import median_seconds, report
from transformers import ViTForImageClassification

BATCH = 8


def random_images(model):
    return torch.randn(BATCH, 3, model.config.image_size, model.config.image_size)


class Logits(torch.nn.Module):
    """Returns the logits, without the names of the library's outputs."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, pixels):
        return self.model(pixel_values=pixels).logits


def of_torch(given, model):
    from pytorch import version_and_flags
    model.to({"fp32": torch.float32, "bf16": torch.bfloat16}[given.dtype])
    pixels = random_images(model).to(model.dtype)

    def run():
        with torch.inference_mode():
            model(pixel_values=pixels)

    return run, version_and_flags()


def training(given, model):
    from pytorch import version_and_flags
    pixels, labels = random_images(model), torch.randint(model.config.num_labels, (BATCH,))
    optimizer = torch.optim.AdamW(model.train().parameters(), lr=1e-4)

    def run():
        with torch.autocast("cpu", torch.bfloat16, enabled=given.dtype == "bf16"):
            loss = model(pixel_values=pixels, labels=labels).loss
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()

    return run, version_and_flags()


def of_onnxruntime(given, model):
    import onnxruntime
    path = pathlib.Path(given.model) / "fp32.onnx"
    if not path.exists():
        part = path.with_name("part.onnx")
        torch.onnx.export(Logits(model), (random_images(model),), str(part), input_names=["pixels"], output_names=["logits"], dynamo=False,
                          opset_version=17)
        part.rename(path)
    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads = given.threads
    session = onnxruntime.InferenceSession(str(path), settings, providers=["CPUExecutionProvider"])
    pixels = random_images(model).numpy()
    return lambda: session.run(None, {"pixels": pixels}), (onnxruntime.__version__, "CPUExecutionProvider")


def of_openvino(given, model):
    import openvino
    converted = openvino.convert_model(Logits(model), example_input=random_images(model))
    hint = "f32" if given.dtype == "fp32" else "bf16"
    settings = {"INFERENCE_NUM_THREADS": given.threads, "PERFORMANCE_HINT": "LATENCY", "INFERENCE_PRECISION_HINT": hint}
    request = openvino.Core().compile_model(converted, "CPU", settings).create_infer_request()
    pixels = random_images(model).numpy()
    return lambda: request.infer([pixels]), (openvino.get_version(), f"PERFORMANCE_HINT LATENCY; INFERENCE_PRECISION_HINT {hint}")


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--program", choices=("torch", "onnxruntime", "openvino"), required=True)
    options.add_argument("--train", action="store_true", help="steps of training; PyTorch only")
    options.add_argument("--model", required=True)
    options.add_argument("--dtype", choices=("fp32", "bf16"), required=True)
    options.add_argument("--runs", type=int, required=True)
    options.add_argument("--threads", type=int, required=True)
    given = options.parse_args()
    if given.train and given.program != "torch":
        raise SystemExit("only PyTorch trains")
    torch.set_num_threads(given.threads)
    attention = "sdpa" if given.program == "torch" else "eager"  # exporters can read the latter
    model = ViTForImageClassification.from_pretrained(given.model, dtype=torch.float32, attn_implementation=attention).eval()
    make = training if given.train else {"torch": of_torch, "onnxruntime": of_onnxruntime, "openvino": of_openvino}[given.program]
    run, version = make(given, model)
    report(BATCH / median_seconds(run, given.runs), *version)


if __name__ == "__main__":
    main()
