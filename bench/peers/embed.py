"""Measures sentences per second of a BERT with PyTorch or ONNX Runtime, tokenisation included."""
import argparse
import os
import pathlib

import torch
import transformers
from encoder import Encoder, batches, example, open_tokenizer, read_lines
from pytorch import version_and_flags
from result import median_seconds, report


def run_torch(given, tokenizer, lines):
    if given.dtype == "int8":
        raise SystemExit("PyTorch: int8 is not measured")
    model = transformers.AutoModel.from_pretrained(given.model, dtype={"fp32": torch.float32, "bf16": torch.bfloat16}[given.dtype]).eval()

    def run():
        with torch.inference_mode():
            for ids, mask, types in batches(tokenizer, lines):
                mask = torch.from_numpy(mask)
                x = model(input_ids=torch.from_numpy(ids), attention_mask=mask, token_type_ids=torch.from_numpy(types)).last_hidden_state
                weights = mask[:, :, None].to(x.dtype)
                (x * weights).sum(1) / weights.sum(1)  # the vectors; not used

    return run, *version_and_flags()


def exported(given, tokenizer):
    """Returns the model as an ONNX file, which is kept beside the model."""
    from onnxruntime.quantization import QuantType, quantize_dynamic
    folder = pathlib.Path(given.model) / "onnx"
    folder.mkdir(exist_ok=True)
    plain, quantised, part = folder / "fp32.onnx", folder / "int8.onnx", folder / "part.onnx"
    if not plain.exists():
        names = ["ids", "mask", "types"]
        axes = {name: {0: "sentences", 1: "tokens"} for name in names} | {"vectors": {0: "sentences"}}
        torch.onnx.export(Encoder(given.model), example(tokenizer), str(part), input_names=names, output_names=["vectors"],
                          dynamic_axes=axes, opset_version=17, dynamo=False)
        part.rename(plain)
    if given.dtype == "int8" and not quantised.exists():
        quantize_dynamic(str(plain), str(part), weight_type=QuantType.QInt8)
        part.rename(quantised)
    return str(quantised if given.dtype == "int8" else plain)


def run_onnxruntime(given, tokenizer, lines):
    import onnxruntime
    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads = given.threads
    session = onnxruntime.InferenceSession(exported(given, tokenizer), settings, providers=["CPUExecutionProvider"])

    def run():
        for ids, mask, types in batches(tokenizer, lines):
            session.run(None, {"ids": ids, "mask": mask, "types": types})

    return run, onnxruntime.__version__, onnxruntime.get_build_info()


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--program", choices=("torch", "onnxruntime"), required=True)
    options.add_argument("--model", required=True)
    options.add_argument("--lines", required=True)
    options.add_argument("--dtype", choices=("fp32", "bf16", "int8"), required=True)
    options.add_argument("--runs", type=int, required=True)
    options.add_argument("--threads", type=int, required=True)
    given = options.parse_args()
    os.environ["HF_HUB_OFFLINE"] = "1"
    torch.set_num_threads(given.threads)
    lines, tokenizer = read_lines(given.lines), open_tokenizer(given.model)
    run, version, flags = (run_torch if given.program == "torch" else run_onnxruntime)(given, tokenizer, lines)
    report(len(lines) / median_seconds(run, given.runs), version, flags)


if __name__ == "__main__":
    main()
