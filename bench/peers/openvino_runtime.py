"""Measures a Llama or an embedder with OpenVINO, in tokens or sentences per second. (A script named openvino.py would hide the package.)"""
import argparse
import os
import pathlib
import shutil

os.environ["HF_HUB_OFFLINE"] = "1"

import nncf
import numpy
import openvino
from result import median_seconds, report


def hint_of(given):
    return "f32" if given.dtype == "fp32" else "bf16"  # of the products that are not int8


def compile_model(model, given):
    settings = {"INFERENCE_NUM_THREADS": given.threads, "PERFORMANCE_HINT": "LATENCY", "INFERENCE_PRECISION_HINT": hint_of(given)}
    return openvino.Core().compile_model(model, "CPU", settings).create_infer_request()


def kept(path, make):
    """Returns the model that make() returned, which is kept in a file."""
    if not path.exists():
        path.parent.mkdir(exist_ok=True)
        part = path.with_name("part-" + path.name)
        openvino.save_model(make(), part, compress_to_fp16=False)
        part.with_suffix(".bin").rename(path.with_suffix(".bin"))
        part.rename(path)
    return openvino.Core().read_model(path)


def open_llama(given):
    folder = pathlib.Path(given.model) / "openvino"
    exported = folder / "openvino_model.xml"
    if not exported.exists():
        from optimum.intel import OVModelForCausalLM
        part = folder.with_name("part-openvino")
        shutil.rmtree(part, ignore_errors=True)
        OVModelForCausalLM.from_pretrained(given.model, export=True, compile=False, load_in_8bit=False).save_pretrained(part)
        folder.mkdir(exist_ok=True)
        for file in part.iterdir():
            file.rename(folder / file.name)
        part.rmdir()
    if given.dtype == "bf16":
        return openvino.Core().read_model(exported)
    settings = {"int8": {"mode": nncf.CompressWeightsMode.INT8_SYM},
                "int4": {"mode": nncf.CompressWeightsMode.INT4_SYM, "group_size": 32, "ratio": 1.0}}[given.dtype]
    return kept(folder / f"{given.dtype}.xml", lambda: nncf.compress_weights(openvino.Core().read_model(exported), **settings))


class Llama:
    """Sequences that read tokens; the request keeps their keys and values."""

    def __init__(self, given):
        model = open_llama(given)
        self.inputs = {name for each in model.inputs for name in each.get_names()}
        self.request = compile_model(model, given)
        self.seen = 0

    def reset(self):
        self.request.reset_state()
        self.seen = 0

    def read(self, ids):
        sequences, tokens = ids.shape
        values = {"input_ids": ids, "attention_mask": numpy.ones((sequences, self.seen + tokens), numpy.int64),
                  "position_ids": numpy.tile(numpy.arange(self.seen, self.seen + tokens), (sequences, 1)),
                  "beam_idx": numpy.arange(sequences, dtype=numpy.int32)}
        self.request.infer({name: value for name, value in values.items() if name in self.inputs})
        self.seen += tokens


def measure_llama(given):
    llama = Llama(given)
    ids = numpy.random.default_rng(1).integers(300, 31000, (given.streams, max(given.depth, given.tokens)))

    def read_prompt():
        llama.reset()
        llama.read(ids[:, : given.tokens])

    if given.work == "prompt":
        return given.tokens / median_seconds(read_prompt, given.runs)

    def decode():
        for i in range(given.tokens):
            llama.read(ids[:, i % given.depth][:, None])

    llama.read(ids[:, : given.depth])  # decode() follows it twice: once without being measured
    return given.streams * given.tokens / median_seconds(decode, 1)


def measure_embedder(given):
    from encoder import Encoder, batches, example, open_tokenizer, read_lines
    lines, tokenizer = read_lines(given.lines), open_tokenizer(given.model)
    folder = pathlib.Path(given.model) / "openvino"
    model = kept(folder / "fp32.xml", lambda: openvino.convert_model(Encoder(given.model), example_input=example(tokenizer)))
    if given.dtype == "int8":
        data = nncf.Dataset(list(batches(tokenizer, lines[:320])), list)
        plain = model
        model = kept(folder / "int8.xml", lambda: nncf.quantize(plain, data, model_type=nncf.ModelType.TRANSFORMER, subset_size=10))
    request = compile_model(model, given)

    def run():
        for batch in batches(tokenizer, lines):
            request.infer(list(batch))

    return len(lines) / median_seconds(run, given.runs)


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--work", choices=("prompt", "decode", "embed"), required=True)
    options.add_argument("--model", required=True)
    options.add_argument("--dtype", choices=("fp32", "bf16", "int8", "int4"), required=True)
    options.add_argument("--threads", type=int, required=True)
    options.add_argument("--lines", help="embed: a file of sentences")
    options.add_argument("--tokens", type=int, default=512, help="prompt: its length; decode: new tokens of each sequence")
    options.add_argument("--streams", type=int, default=1, help="decode: sequences")
    options.add_argument("--depth", type=int, default=16, help="decode: tokens before the measured ones")
    options.add_argument("--runs", type=int, default=3)
    given = options.parse_args()
    figure = measure_embedder(given) if given.work == "embed" else measure_llama(given)
    report(figure, openvino.get_version(), "PERFORMANCE_HINT LATENCY; INFERENCE_PRECISION_HINT f32 for fp32, else bf16")


if __name__ == "__main__":
    main()
