"""The other programs that ./run bench measures: where they are, the rows that they can run, and the commands. All of them are optional."""
import json
import os
import pathlib
import re
import statistics
import subprocess

from bench_rows import GGUF_TYPES, LINES, WINDOWS, make_gguf
from bench_models import ROOT

SCRIPTS = ROOT / "bench/peers"
LONGEST = 1800  # seconds that one measurement may take


class PeerError(Exception):
    """A peer could not be measured; the message is one line."""


def output_of(command):
    """Returns what a command prints on standard output and standard error."""
    try:
        done = subprocess.run([str(part) for part in command], capture_output=True, text=True, errors="replace", check=False, timeout=LONGEST)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise PeerError(str(error).splitlines()[0]) from error
    if done.returncode:
        said = [line.strip() for line in (done.stdout + done.stderr).splitlines() if line.strip()]
        raise PeerError(said[-1] if said else f"exit status {done.returncode}")
    return done.stdout, done.stderr


class Script:
    """A script of bench/peers, run by the Python that an environment variable names."""

    def __init__(self, name, variable, modules, script, rows, arguments):
        self.name, self.variable, self.modules = name, variable, modules
        self.script, self.rows, self.arguments = SCRIPTS / script, rows, arguments
        self.python = os.environ.get(variable) or "python3"
        self.version = self.flags = ""

    def missing(self):
        """Returns how to get what the peer lacks, or None if it can be measured."""
        code = f"import importlib.util; print(*[each for each in {self.modules} if not importlib.util.find_spec(each)])"
        try:
            lacking = output_of([self.python, "-c", code])[0].split()
        except PeerError:
            lacking = self.modules
        packages = [{"optimum": "optimum-intel"}.get(module, module) for module in lacking]
        return f"set {self.variable} to a Python in which this has been run: pip install {' '.join(packages)}" if lacking else None

    def measures(self, row):
        return row.precision in self.rows.get(row.kind, ())

    def measure(self, row, threads):
        printed, _ = output_of([self.python, self.script, "--dtype", row.precision, "--threads", threads, *self.arguments(row)])
        try:
            result = json.loads(printed.strip().splitlines()[-1])
            self.version, self.flags = result["version"], result["flags"]
            return result["figure"]
        except (IndexError, KeyError, ValueError) as error:
            raise PeerError(f"{self.script.name} printed no result") from error


class LlamaPrograms:
    """llama-bench and llama-batched-bench of llama.cpp or of a fork of it, in the folder that an environment variable names."""

    def __init__(self, name, repository, variable, program, options=(), batched_options=()):
        self.name, self.repository, self.variable, self.program = name, repository, variable, program
        self.options, self.batched_options = options, batched_options
        self.folder = pathlib.Path(os.environ.get(variable, "")).absolute()
        self.version = self.flags = ""

    def missing(self):
        """Returns how to get the programs, or None if they are there."""
        names = ("llama-bench", "llama-batched-bench")
        if os.environ.get(self.variable) and all((self.folder / name).exists() for name in names):
            return None
        return f"set {self.variable} to a folder with {' and '.join(names)}, built from {self.repository} with cmake -DGGML_NATIVE=ON"

    def measures(self, row):
        return row.kind in ("prompt", "decode", "streams") and row.precision in GGUF_TYPES

    def measure(self, row, threads):
        common = ["-m", make_gguf(self.program, row.precision), "-t", threads]
        if row.kind == "prompt" or (row.streams == 1 and row.depth <= 16):
            prompt, new = (row.tokens, 0) if row.kind == "prompt" else (0, row.tokens)
            return self.bench([*common, "-p", prompt, "-n", new, "-r", 2])
        if not self.version:  # only llama-bench prints it
            self.bench([*common, "-p", 1, "-n", 0, "-r", 1])
        cells = row.streams * (row.depth + row.tokens)
        printed = "".join(output_of([self.folder / "llama-batched-bench", *common, *self.batched_options, "-c", -(-cells // 1024) * 1024, "-npp", row.depth,
                                     "-ntg", row.tokens, "-npl", row.streams]))
        # | PP | TG | B | N_KV | T_PP s | S_PP t/s | T_TG s | S_TG t/s | ...
        found = re.search(rf"\|\s*{row.depth} \|\s*{row.tokens} \|\s*{row.streams} \|(?:[^|\n]*\|){{4}}\s*([\d.]+) \|", printed)
        if not found:
            raise PeerError("llama-batched-bench printed no row")
        return float(found[1])

    def bench(self, arguments):
        """Returns the speed of one test of llama-bench, and keeps how the program describes itself."""
        printed, _ = output_of([self.folder / "llama-bench", *arguments, *self.options, "-o", "json"])
        try:
            result = json.loads(printed[printed.index("[\n"):])[0]
            speed = statistics.median(result["samples_ts"])
        except (IndexError, KeyError, ValueError) as error:
            raise PeerError("llama-bench printed no result") from error
        self.version = f"{result['build_commit']} ({result['build_number']})"
        fields = ("backends", "flash_attn", "type_k", "n_ubatch")
        self.flags = "; ".join([f"{field} {result[field]}" for field in fields if field in result] + build_settings(self.folder)
                               + ([" ".join(self.options)] if self.options else []))
        return speed


def build_settings(folder):
    """Returns the settings of CMake of the build folder that contains `folder`, if it has one."""
    for parent in folder.parents:
        if (parent / "CMakeCache.txt").exists():
            cache = dict(re.findall(r"^(\w+):\w+=(.*)$", (parent / "CMakeCache.txt").read_text(), re.MULTILINE))
            return [f"{key}={cache[key]}" for key in ("CMAKE_BUILD_TYPE", "GGML_NATIVE", "GGML_IQK_FA_ALL_QUANTS") if key in cache]
    return []


def train_arguments(*more):
    return lambda row: ["--preset", row.preset, "--steps", row.steps, *more]


def embed_arguments(*more):
    return lambda row: ["--model", row.model, "--lines", LINES["embed"], "--runs", row.runs, *more]


def translate_arguments(row):
    return ["--model", row.model, "--lines", LINES["translate"], "--beams", row.beams, "--tokens", row.tokens, "--runs", row.runs]


def image_arguments(program):
    return lambda row: ["--model", row.model, "--program", program, "--runs", row.steps or row.runs, *(["--train"] if row.trains else [])]


def transcribe_arguments(row):
    return ["--model", row.model, "--windows", WINDOWS, "--beams", row.beams, "--tokens", row.tokens, "--runs", row.runs]


def openvino_arguments(row):
    if row.kind == "embed":
        return embed_arguments("--work", "embed")(row)
    return ["--work", "prompt" if row.kind == "prompt" else "decode", "--model", row.model, "--tokens", row.tokens, "--streams", row.streams,
            "--depth", row.depth, "--runs", 2]


def make_peers(program):
    """Returns all peers; `program` is fovea, which writes the models of those that read GGUF."""
    any_train = {"train": ("fp32", "bf16")}
    recurrent, images = {"recurrent": ("fp32", "bf16")}, {"images": ("fp32", "bf16")}
    trained = {"image-training": ("fp32", "bf16")}
    any_llama = {kind: ("bf16", "int8", "int4") for kind in ("prompt", "decode", "streams")}
    encoder = ["torch", "transformers", "tokenizers", "numpy"]
    return [
        Script("PyTorch eager", "PEERS_PYTHON", ["torch"], "train.py", any_train, train_arguments()),
        Script("PyTorch compiled", "PEERS_PYTHON", ["torch"], "train.py", any_train, train_arguments("--compile")),
        LlamaPrograms("llama.cpp", "ggml-org/llama.cpp", "LLAMA_BENCH", program),
        LlamaPrograms("ik_llama.cpp", "ikawrakow/ik_llama.cpp", "IK_LLAMA_BENCH", program),
        LlamaPrograms("ik_llama.cpp -rtr", "ikawrakow/ik_llama.cpp", "IK_LLAMA_BENCH", program, ["-rtr", "1"], ["-rtr"]),
        Script("OpenVINO", "OPENVINO_PYTHON", ["openvino", "nncf", "optimum", *encoder], "openvino_runtime.py",
               any_llama | {"embed": ("fp32", "bf16", "int8")}, openvino_arguments),
        Script("PyTorch", "PEERS_PYTHON", encoder, "embed.py", {"embed": ("fp32", "bf16")}, embed_arguments("--program", "torch")),
        Script("ONNX Runtime", "PEERS_PYTHON", ["onnxruntime", "onnx", *encoder], "embed.py", {"embed": ("fp32", "int8")},
               embed_arguments("--program", "onnxruntime")),
        Script("PyTorch recurrent", "PEERS_PYTHON", ["torch"], "recurrent.py", recurrent, train_arguments()),
        Script("PyTorch images", "PEERS_PYTHON", ["torch", "transformers", "numpy"], "images.py", images | trained,
               image_arguments("torch")),
        Script("ONNX Runtime images", "PEERS_PYTHON", ["onnxruntime", "onnx", "torch", "transformers", "numpy"], "images.py",
               {"images": ("fp32",)}, image_arguments("onnxruntime")),
        Script("OpenVINO images", "OPENVINO_PYTHON", ["openvino", "torch", "transformers", "numpy"], "images.py", images,
               image_arguments("openvino")),
        Script("CTranslate2", "PEERS_PYTHON", ["ctranslate2", "torch", "transformers"], "translate.py", {"translate": ("fp32", "int8")},
               translate_arguments),
        Script("CTranslate2", "PEERS_PYTHON", ["ctranslate2", "torch", "transformers"], "transcribe.py", {"transcribe": ("fp32", "int8")},
               transcribe_arguments),
        Script("CTranslate2 in fp32", "PEERS_PYTHON", ["ctranslate2", "torch", "transformers"], "transcribe.py", {"transcribe": ("bf16",)},
               transcribe_arguments),
    ]
