"""libfovea.so by ctypes: the structs and functions of include/fovea/c.h that the package uses."""

import ctypes as c
import ctypes.util
import os
import pathlib

from . import _cpu

_cpu.check()


class Error(Exception):
    """An error of fovea, with a message of one line."""


class InvalidArgument(Error, ValueError):
    """An invalid option, value or shape."""


class BadFile(Error, OSError):
    """A file that cannot be read or has invalid contents."""


class Unsupported(Error, NotImplementedError):
    """Something valid that this version or machine does not support."""


class OutOfMemory(Error, MemoryError):
    """A limit of size or memory would be exceeded."""


class Failed(Error, RuntimeError):
    """A run that failed."""


class Internal(Error, RuntimeError):
    """A bug of fovea."""


ERRORS = (None, InvalidArgument, BadFile, Unsupported, OutOfMemory, Failed, Internal)

TextCallback = c.CFUNCTYPE(c.c_int, c.POINTER(c.c_char), c.c_size_t, c.c_void_p)
LogitsCallback = c.CFUNCTYPE(
    None, c.POINTER(c.c_int32), c.c_size_t, c.POINTER(c.c_float), c.c_size_t, c.c_void_p
)


class ModelOptions(c.Structure):
    _fields_ = [("size", c.c_size_t), ("precision", c.c_int32), ("cache_precision", c.c_int32)]


def _fields(kind, names):
    return [(name, kind) for name in names.split()]


class GenerateOptions(c.Structure):
    _fields_ = [
        ("size", c.c_size_t),
        *_fields(c.c_float, "temperature top_p min_p typical_p"),
        ("top_k", c.c_int64),
        *_fields(c.c_float, "top_n_sigma repetition_penalty presence_penalty frequency_penalty"),
        ("no_repeat_ngram", c.c_int64),
        ("seed", c.c_uint64),
        ("bias_ids", c.POINTER(c.c_int32)),
        ("bias_values", c.POINTER(c.c_float)),
        ("bias_count", c.c_size_t),
        ("beams", c.c_int64),
        ("length_penalty", c.c_float),
        ("early_stopping", c.c_int32),
        ("max_tokens", c.c_int64),
        ("min_tokens", c.c_int64),
        ("ignore_end", c.c_int32),
        ("keep_special", c.c_int32),
        ("stop", c.POINTER(c.c_char_p)),
        ("stop_count", c.c_size_t),
        ("stop_ids", c.POINTER(c.c_int32)),
        ("stop_id_count", c.c_size_t),
        ("forced_ids", c.POINTER(c.c_int32)),
        ("forced_count", c.c_size_t),
        ("logprobs", c.c_int64),
        ("speculative_tokens", c.c_int64),
        ("draft", c.c_void_p),
        ("on_text", TextCallback),
        ("on_logits", LogitsCallback),
        ("user", c.c_void_p),
    ]  # later fields keep their defaults: `size` tells the library that they are missing


class Generation(c.Structure):
    _fields_ = [
        ("size", c.c_size_t),
        ("text", c.POINTER(c.c_char)),
        ("text_size", c.c_size_t),
        ("ids", c.POINTER(c.c_int32)),
        ("id_count", c.c_size_t),
        ("logprobs", c.POINTER(c.c_float)),
        ("top_ids", c.POINTER(c.c_int32)),
        ("top_logprobs", c.POINTER(c.c_float)),
        ("top_count", c.c_size_t),
        ("finish", c.c_int32),
        ("score", c.c_float),
        ("prompt_tokens", c.c_int64),
    ]


class TraceOptions(c.Structure):
    _fields_ = [
        ("size", c.c_size_t),
        ("text", c.c_char_p),
        ("text_size", c.c_size_t),
        ("ids", c.POINTER(c.c_int32)),
        ("id_count", c.c_size_t),
        ("input", c.c_char_p),
        ("gradients", c.c_int32),
        ("reserved", c.c_int32),
        ("what", c.c_char_p),
        ("layers", c.c_char_p),
        ("patch", c.c_char_p),
    ]


class Message(c.Structure):
    _fields_ = [
        ("role", c.c_char_p),
        ("content", c.c_char_p),
        ("content_size", c.c_size_t),
        ("members", c.c_char_p),
    ]


class ChatOptions(c.Structure):
    _fields_ = [
        ("size", c.c_size_t),
        ("tools", c.c_char_p),
        ("documents", c.c_char_p),
        ("variables", c.c_char_p),
        ("no_generation_prompt", c.c_int32),
        ("reserved", c.c_int32),
    ]


class EmbedderOptions(c.Structure):
    _fields_ = [("size", c.c_size_t), ("precision", c.c_int32), ("reserved", c.c_int32)]


class EmbedOptions(c.Structure):
    _fields_ = [
        ("size", c.c_size_t),
        ("prompt_name", c.c_char_p),
        ("prompt", c.c_char_p),
        ("dimensions", c.c_int64),
        ("normalise", c.c_int32),
        ("truncate", c.c_int32),
        ("batch_tokens", c.c_int64),
    ]


class Option(c.Structure):
    _fields_ = [("name", c.c_char_p), ("value", c.c_char_p)]


class TrainProgress(c.Structure):
    _fields_ = [
        ("size", c.c_size_t),
        ("step", c.c_int64),
        ("steps", c.c_int64),
        *_fields(c.c_double, "epoch loss validation_loss best_loss learning_rate gradient_norm"),
        *_fields(c.c_double, "tokens_per_second seconds_left"),
        ("tokens", c.c_int64),
        ("peak_bytes", c.c_uint64),
        *_fields(c.c_char_p, "sample saved warning"),
    ]


class TrainResult(c.Structure):
    _fields_ = [
        ("size", c.c_size_t),
        ("step", c.c_int64),
        *_fields(c.c_double, "loss best_loss seconds tokens_per_second"),
        ("peak_bytes", c.c_uint64),
        ("interrupted", c.c_int32),
        ("stopped_early", c.c_int32),
    ]


TrainCallback = c.CFUNCTYPE(c.c_int, c.POINTER(TrainProgress), c.c_void_p)


def _opened():
    own = sorted(pathlib.Path(__file__).parent.glob("libfovea.so*"))
    candidates = [os.environ.get("FOVEA_LIBRARY"), *map(str, own), "libfovea.so.0"]
    for path in filter(None, candidates):
        try:
            return c.CDLL(path)
        except OSError as error:
            failed = error
    raise ImportError(
        f"libfovea.so.0: {failed}; expected it installed, or its path in FOVEA_LIBRARY"
    )


library = _opened()
for _name, _result in {
    "fovea_version": c.c_char_p,
    "fovea_error": c.c_char_p,
    "fovea_model_error": c.c_char_p,
    "fovea_model_warning": c.c_char_p,
    "fovea_chat_error": c.c_char_p,
    "fovea_tokenizer_error": c.c_char_p,
    "fovea_embedder_error": c.c_char_p,
    "fovea_embedder_width": c.c_int64,
    "fovea_tokenizer_size": c.c_int32,
    "fovea_train_option_name": c.c_char_p,
    "fovea_train_option_help": c.c_char_p,
}.items():
    getattr(library, _name).restype = _result


def call(name, *arguments, handle=None):
    """Calls a function that returns a status; `handle` is (kind, pointer), which is passed first."""
    first = () if handle is None else (handle[1],)
    status = getattr(library, "fovea_" + name)(*first, *arguments)
    if status != 0:
        text = (
            library.fovea_error()
            if handle is None
            else getattr(library, f"fovea_{handle[0]}_error")(handle[1])
        )
        raise ERRORS[status](text.decode())


class Handle:
    """A handle of the library, which is freed with this object."""

    def __init__(self, kind, name, *arguments, handle=None):
        self.kind, self.pointer = kind, c.c_void_p()
        call(name, *arguments, c.byref(self.pointer), handle=handle)

    @property
    def pair(self):
        return self.kind, self.pointer

    def __del__(self):
        if getattr(self, "pointer", None):
            getattr(library, f"fovea_{self.kind}_free")(self.pointer)


def options_of(struct, init, *arguments):
    """Returns a struct of options with its defaults."""
    options = struct()
    call(init, c.byref(options), c.c_size_t(c.sizeof(struct)), *arguments)
    return options
