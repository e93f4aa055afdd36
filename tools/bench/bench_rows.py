"""The rows of ./run bench: the work of each, how fovea measures it, and the operations and bytes that bound its speed."""
import dataclasses
import json
import subprocess

import bench_models
from bench_models import BERT, LLAMA, MARIAN, MODELS, VIT, WHISPER, WHISPERS

FOLDERS = {"prompt": MODELS / "llama-135m", "decode": MODELS / "llama-135m", "embed": MODELS / "bert", "translate": MODELS / "marian",
           "images": MODELS / "vit", "image-training": MODELS / "vit"}
LINES = {"embed": MODELS / "lines.txt", "translate": MODELS / "source.txt"}
KINDS = ("train", "recurrent", "prompt", "decode", "streams", "embed", "translate", "transcribe", "images", "image-training", "busy")
WINDOWS = 2  # transcribe: windows that are decoded together
GGUF_TYPES = {"bf16": "bf16", "int8": "q8_0", "int4": "q4_0"}


@dataclasses.dataclass(frozen=True)
class Row:
    kind: str  # one of KINDS, but not busy
    precision: str
    preset: str = ""  # train, recurrent, image-training; transcribe: one of WHISPERS
    steps: int = 0    # train, recurrent, image-training: measured steps
    tokens: int = 0   # prompt: its length; decode, translate, transcribe: new tokens of each sequence
    streams: int = 1  # decode: sequences
    depth: int = 16   # decode: tokens before the measured ones
    beams: int = 1    # translate, transcribe
    runs: int = 5     # embed, translate, transcribe, images
    busy: bool = False  # while another program computes without a pause on one core

    @property
    def trains(self):
        return self.kind in ("train", "recurrent", "image-training")

    @property
    def work(self):
        works = {"train": f"train {self.preset}", "recurrent": f"train {self.preset}", "prompt": f"prompt of {self.tokens:,}",
                 "streams": f"decode {self.streams} streams",
                 "decode": "decode one stream" + (f" at depth {self.depth:,}" if self.depth > 16 else ""),
                 "images": "classify with ViT-S/16", "image-training": "train ViT-S/16",
                 "embed": "embed MiniLM", "translate": f"translate with {self.beams} beam{'s' if self.beams > 1 else ''}",
                 "transcribe": f"Whisper {self.preset}, {self.beams} beam{'s' if self.beams > 1 else ''}"}
        return works[self.kind] + (", a core is busy" if self.busy else "")

    @property
    def chosen_as(self):
        return "busy" if self.busy else self.kind

    @property
    def name(self):
        return f"{self.work} {self.precision}"

    @property
    def unit(self):
        units = {"embed": "sentences/s", "translate": "output tokens/s", "transcribe": "s of audio/s", "images": "images/s",
                 "image-training": "images/s"}
        return units.get(self.kind, "tokens/s")

    @property
    def model(self):
        if self.kind == "transcribe":
            return MODELS / f"whisper-{self.preset}"
        return FOLDERS.get("decode" if self.kind == "streams" else self.kind)

    def arguments(self):
        """Returns the arguments of `fovea bench`, and the key of the speed in its JSON."""
        if self.trains:
            key = "sequences_per_second" if self.kind == "image-training" else "tokens_per_second"
            return ["--train", self.preset, "--dtype", self.precision, "--steps", self.steps], key
        common = [self.model, "--dtype", self.precision]
        if self.kind == "prompt":
            return [*common, "--prompt", self.tokens, "--decode", 1], "prompt_tokens_per_second"
        if self.kind in ("decode", "streams"):
            return [*common, "--prompt", 16, "--decode", self.tokens, "--depth", self.depth, "--batch", self.streams], "decode_tokens_per_second"
        if self.kind == "images":
            return [*common, "--images", 8 * self.runs, "--runs", self.runs], "images_per_second"
        if self.kind == "embed":
            return [*common, "--embed", LINES["embed"], "--runs", self.runs], "sentences_per_second"
        if self.kind == "transcribe":
            return [*common, "--transcribe", WINDOWS, "--beams", self.beams, "--tokens", self.tokens, "--runs", self.runs], "audio_per_second"
        return [*common, "--translate", LINES["translate"], "--beams", self.beams, "--tokens", self.tokens, "--runs", self.runs], "tokens_per_second"

    def cost(self, result):
        """Returns the operations and the bytes read that a token (embed: a sentence; transcribe: a second of audio; images: an image) needs,
        from fovea's result of this row."""
        if self.trains:
            return result["flops_per_step"] / result["batch"] / (1 if self.kind == "image-training" else result["context"]), 0
        if self.kind == "images":
            return vit_operations(), 0
        if self.kind == "prompt":  # the head computes one row only; a token attends to half of the prompt on average
            return llama_operations(self.tokens / 2), result["weight_bytes"] / self.tokens
        if self.kind in ("decode", "streams"):
            seen = self.depth + self.tokens / 2
            cache = 2 * 2 * LLAMA["layers"] * LLAMA["kv_heads"] * LLAMA["width"] // LLAMA["heads"] * seen  # keys and values in bf16
            return llama_operations(seen) + 2 * LLAMA["vocabulary"] * LLAMA["width"], result["weight_bytes"] / self.streams + cache
        if self.kind == "embed":
            length = result["tokens"] / result["sentences"]
            layer = 2 * (4 * BERT["width"] ** 2 + 2 * BERT["width"] * BERT["ffn"]) + 4 * length * BERT["width"]
            return length * BERT["layers"] * layer, 0
        if self.kind == "transcribe":
            return whisper_operations(self), 0
        return marian_operations(self, result), 0


def llama_operations(seen):
    """Returns the operations of the layers for one token that attends to `seen` tokens."""
    width, heads = LLAMA["width"], LLAMA["heads"]
    products = 2 * width * width + 2 * width * width // heads * LLAMA["kv_heads"] + 3 * width * LLAMA["ffn"]
    return LLAMA["layers"] * (2 * products + 4 * seen * width)


def vit_operations():
    """Returns the operations for one image."""
    width, tokens = VIT["width"], (VIT["size"] // VIT["patch"]) ** 2 + 1
    layer = 2 * (4 * width**2 + 2 * width * VIT["ffn"]) + 4 * tokens * width
    return tokens * (VIT["layers"] * layer + 2 * 3 * VIT["patch"] ** 2 * width)


def marian_operations(row, result):
    """Returns the operations for one output token, with its share of the encoder. Attention, less than 2%, is not counted."""
    width, ffn, layers = MARIAN["width"], MARIAN["ffn"], MARIAN["layers"]
    source = layers * (4 * width**2 + 2 * width * ffn + 2 * width**2)  # the decoder's keys and values of the source included
    output = layers * (6 * width**2 + 2 * width * ffn) + width * MARIAN["vocabulary"]
    return 2 * (source * result["source_tokens"] / result["tokens"] + output * row.beams)


def whisper_operations(row):
    """Returns the operations for one second of a window of 30 s. The spectrogram and the decoder's attention to itself are not counted."""
    shape = WHISPERS[row.preset]
    width, layers, positions = shape["width"], shape["layers"], WHISPER["positions"]
    convolutions = 3 * width * (2 * positions * WHISPER["bins"] + positions * width)
    encoder = positions * layers * (4 * width**2 + 8 * width**2 + 2 * positions * width)
    sources = positions * layers * 2 * width**2  # the decoder's keys and values of the audio
    token = layers * (6 * width**2 + 8 * width**2 + 2 * positions * width) + width * WHISPER["vocabulary"]
    return 2 * (convolutions + encoder + sources + row.tokens * row.beams * token) / 30


def make_rows(long_rows=False, quick=False):
    """Returns all rows; quick: of a few tokens, for a check of the tool itself."""
    rows = [Row("train", precision, preset=preset, steps=2 if quick else steps)
            for preset, steps in (("nano", 150), ("baby", 8), *([("gpt2", 3)] if long_rows else [])) for precision in ("fp32", "bf16")]
    rows += [Row("recurrent", precision, preset=preset, steps=2 if quick else 10) for preset in ("rnn", "gru", "lstm")
             for precision in ("fp32", "bf16")]
    rows += [Row("prompt", precision, tokens=64 if quick else 512) for precision in ("bf16", "int8")]
    if long_rows:
        rows.append(Row("prompt", "bf16", tokens=8192))
    rows += [Row("decode", precision, tokens=4 if quick else 128) for precision in ("bf16", "int8", "int4")]
    if long_rows:
        rows.append(Row("decode", "bf16", tokens=64, depth=8192))
    rows += [Row("streams", precision, tokens=2 if quick else 64, streams=16) for precision in ("bf16", "int8", "int4")]
    runs = 1 if quick else 3
    rows += [Row("embed", precision, runs=runs) for precision in ("fp32", "bf16", "int8")]
    rows += [Row("images", precision, runs=runs) for precision in ("fp32", "bf16")]
    rows += [Row("image-training", precision, preset="vit-small", steps=1 if quick else 4) for precision in ("fp32", "bf16")]
    rows += [Row("translate", precision, tokens=16, beams=beams, runs=runs) for beams in (1, 4) for precision in ("fp32", "int8")]
    rows += [Row("transcribe", precision, preset=preset, tokens=4 if quick else 64, beams=beams, runs=runs)
             for preset in WHISPERS for beams in (1, 5) for precision in ("fp32", "bf16", "int8")]
    disturbed = {("train nano", "fp32"), ("prompt of 512", "int8"), ("decode one stream", "int8"), ("embed MiniLM", "fp32"),
                 ("translate with 1 beam", "int8")}
    return rows + [dataclasses.replace(row, busy=True) for row in rows if (row.work, row.precision) in disturbed]


def make_models(kinds, quick=False):
    """Writes the models and texts of the kinds of rows."""
    if {"prompt", "decode", "streams", "busy"} & set(kinds):
        bench_models.make_llama(FOLDERS["decode"], **LLAMA)
    if {"embed", "busy"} & set(kinds):
        bench_models.make_lines(LINES["embed"], bench_models.make_bert(FOLDERS["embed"], **BERT), 32 if quick else 512, 5, 40)
    if {"images", "image-training"} & set(kinds):
        bench_models.make_vit(FOLDERS["images"], **VIT)
    if {"translate", "busy"} & set(kinds):
        bench_models.make_lines(LINES["translate"], bench_models.make_marian(FOLDERS["translate"], **MARIAN), 32, 16, 16)
    if "transcribe" in kinds:
        for name, shape in WHISPERS.items():
            bench_models.make_whisper(MODELS / f"whisper-{name}", **shape)


def make_gguf(program, precision):
    """Returns the Llama as a GGUF file with weights of this precision."""
    path = MODELS / f"llama-135m-{GGUF_TYPES[precision]}.gguf"
    if not path.exists():
        part = path.with_name("part-" + path.name)
        part.unlink(missing_ok=True)
        quantize = ["--quantize", precision] if precision != "bf16" else []
        subprocess.run([str(program), "convert", str(FOLDERS["decode"]), str(part), *quantize], stdout=subprocess.DEVNULL, check=True)
        part.rename(path)
    return path


def bench(program, *arguments):
    """Returns the result of `fovea bench`, or None if it fails."""
    command = [str(program), "bench", *map(str, arguments), "--json"]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    return json.loads(done.stdout) if done.returncode == 0 else None
