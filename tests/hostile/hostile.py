"""Support for the tests with hostile files: a generated valid model of a few kilobytes, and the checks of an error: one line, exit code 2
or 3, little memory, little time."""
import json
import os
import pathlib
import re
import resource
import struct
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "system"))
from support import FOVEA  # noqa: E402

MIB = 1 << 20
SLACK = 64 * MIB  # the memory that a refusal may take in addition to the file
SANITIZED = "san" in pathlib.Path(os.environ.get("FOVEA_BUILD", "")).name  # sanitizers need far more memory

CONFIG = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": 8, "hidden_size": 8, "intermediate_size": 12,
          "num_hidden_layers": 1, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 2, "max_position_embeddings": 16,
          "hidden_act": "silu", "rms_norm_eps": 1e-6, "rope_theta": 10000.0, "attention_bias": False, "attention_dropout": 0.0,
          "mlp_bias": False, "tie_word_embeddings": False, "dtype": "float32"}
SHAPES = {"model.embed_tokens.weight": [8, 8], "lm_head.weight": [8, 8], "model.norm.weight": [8],
          "model.layers.0.input_layernorm.weight": [8], "model.layers.0.post_attention_layernorm.weight": [8],
          "model.layers.0.self_attn.q_proj.weight": [8, 8], "model.layers.0.self_attn.k_proj.weight": [4, 8],
          "model.layers.0.self_attn.v_proj.weight": [4, 8], "model.layers.0.self_attn.o_proj.weight": [8, 8],
          "model.layers.0.mlp.gate_proj.weight": [12, 8], "model.layers.0.mlp.up_proj.weight": [12, 8],
          "model.layers.0.mlp.down_proj.weight": [8, 12]}
TOKENIZER = {"version": "1.0", "truncation": None, "padding": None, "added_tokens": [], "normalizer": None,
             "pre_tokenizer": {"type": "Whitespace"}, "post_processor": None, "decoder": None,
             "model": {"type": "WordLevel", "unk_token": "?", "vocab": {"?": 0, "a": 1, "b": 2, "c": 3, "d": 4, "e": 5, "f": 6, "g": 7}}}


def elements(shape):
    count = 1
    for size in shape:
        count *= size
    return count


def entries(shapes):
    """Returns the header of F32 tensors stored one after the other."""
    header, at = {}, 0
    for name, shape in sorted(shapes.items()):
        end = at + 4 * elements(shape)
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [at, end]}
        at = end
    return header


def raw(header, data=b""):
    """Returns a safetensors file with this header, which is an object or bytes."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + data


def weights(shapes, value=0.5):
    count = sum(elements(shape) for shape in shapes.values())
    return raw(entries(shapes), struct.pack("<f", value) * count)


class HostileTest(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory(prefix="fovea hostile ")
        self.addCleanup(holder.cleanup)
        self.folder = pathlib.Path(holder.name)
        self.model = self.folder / "model"
        self.model.mkdir()
        self.good()
        code, message, self.usual_memory = self.run_limited()
        self.assertEqual(code, 0, message)

    def good(self):
        self.write("config.json", CONFIG)
        self.write("model.safetensors", weights(SHAPES))
        self.write("tokenizer.json", TOKENIZER)

    def write(self, name, content):
        path = self.model / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode() if isinstance(content, str) else json.dumps(content).encode())
        return path

    def run_limited(self, *arguments, stack=None):
        """Runs `fovea trace` with the model, or fovea with other arguments, under limits. Returns exit code, standard error and peak
        memory."""
        arguments = arguments or ("trace", self.model, "--ids", "1,2", "--out", self.folder / "out.safetensors")

        def limit():
            resource.setrlimit(resource.RLIMIT_CPU, (120 if SANITIZED else 20,) * 2)
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            if not SANITIZED:
                resource.setrlimit(resource.RLIMIT_AS, (1024 * MIB,) * 2)
            if stack:
                resource.setrlimit(resource.RLIMIT_STACK, (stack,) * 2)

        with tempfile.TemporaryFile() as errors:
            process = subprocess.Popen([FOVEA, *map(str, arguments)], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=errors,
                                       preexec_fn=limit)
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            errors.seek(0)
            return process.returncode, errors.read().decode(errors="replace"), usage.ru_maxrss * 1024

    def refused(self, pattern, *arguments, codes=(2, 3), **limits):
        """Expects one line in the standard form, one of the exit codes, and little more memory than the files take."""
        code, message, memory = self.run_limited(*arguments, **limits)
        self.assertIn(code, codes, message)
        lines = [line for line in message.splitlines() if line.startswith("fovea: error: ")]
        self.assertEqual(len(lines), 1, message)
        self.assertRegex(lines[0], re.compile(pattern))
        self.assertLess(len(lines[0]), 1000, "the error is too long")
        if not SANITIZED:
            files = sum(path.stat().st_blocks * 512 for path in self.model.rglob("*") if path.is_file() and not path.is_symlink())
            self.assertLessEqual(memory, self.usual_memory + files + SLACK)

    def accepted(self, *arguments, **limits):
        code, message, _ = self.run_limited(*arguments, **limits)
        self.assertEqual(code, 0, message)
        return message
