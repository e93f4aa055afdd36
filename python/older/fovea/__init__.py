"""fovea for Python 3.10 and 3.11, over the C interface: text, chats, scores, tokenizers, vectors, traces and training.

The same names as the package for Python 3.12 and later (docs/python), which has all others.
"""

import ctypes as c
import json
import os
import queue
import random
import sys
import tempfile
import threading

from . import _library
from ._library import (
    BadFile,
    Error,
    Failed,
    Handle,
    Internal,
    InvalidArgument,
    OutOfMemory,
    Unsupported,
    call,
    library,
    options_of,
)

__all__ = [
    *(
        "BadFile",
        "Encoder",
        "Error",
        "Failed",
        "Generation",
        "Internal",
        "InvalidArgument",
        "Model",
    ),
    *(
        "OutOfMemory",
        "Tokenizer",
        "Unsupported",
        "finetune",
        "load",
        "set_threads",
        "thread_count",
        "train",
    ),
]
__version__ = library.fovea_version().decode()
_PRECISIONS = ["full", "stored", "fp32", "bf16", "int8", "int4"]
_FINISH = ["length", "stop", "end", "cancelled"]


def __getattr__(name):
    raise AttributeError(
        f"fovea.{name} needs Python 3.12 or later, in which pip install fovea-lm has everything; this is "
        f"{sys.version_info.major}.{sys.version_info.minor}"
    )


def set_threads(count):
    """Sets the number of compute threads of this process."""
    call("set_threads", c.c_int(count))


def thread_count():
    """Returns the number of compute threads."""
    return library.fovea_threads()


def _precision(name):
    if name not in _PRECISIONS:
        raise InvalidArgument(f"precision: {name!r}; expected {', '.join(_PRECISIONS)}")
    return _PRECISIONS.index(name)


def _ids(values):
    return (c.c_int32 * len(values))(*values)


class Tokenizer:
    """Converts texts to token ids and back."""

    def __init__(self, path=None, handle=None):
        self._handle = handle or Handle("tokenizer", "tokenizer_open", os.fsencode(path))

    def __len__(self):
        return library.fovea_tokenizer_size(self._handle.pointer)

    def encode(self, text, *, add_special_tokens=False, parse_special=False):
        """Returns the ids of a text."""
        data, ids, count = text.encode(), c.POINTER(c.c_int32)(), c.c_size_t()
        flags = c.c_uint32(add_special_tokens + 2 * parse_special)
        call(
            "tokenizer_encode",
            data,
            c.c_size_t(len(data)),
            flags,
            c.byref(ids),
            c.byref(count),
            handle=self._handle.pair,
        )
        return ids[: count.value]

    def decode(self, ids, skip_special=False):
        """Returns the text of ids."""
        text, size = c.POINTER(c.c_char)(), c.c_size_t()
        flags = c.c_uint32(4 * skip_special)
        call(
            "tokenizer_decode",
            _ids(ids),
            c.c_size_t(len(ids)),
            flags,
            c.byref(text),
            c.byref(size),
            handle=self._handle.pair,
        )
        return c.string_at(text, size.value).decode()


class Generation:
    """A generated text; str(generation) is its text."""

    def __init__(self, made):
        self.text = c.string_at(made.text, made.text_size).decode()
        self.ids = made.ids[: made.id_count]
        self.finish = _FINISH[made.finish]
        self.logprobs = made.logprobs[: made.id_count] if made.logprobs else []
        self.prompt_tokens = made.prompt_tokens

    def __str__(self):
        return self.text


class Model:
    """A Transformer with its tokenizer. One thread at a time may use it."""

    def __init__(self, path, *, precision="stored", chat_template=None):
        self.path = os.fspath(path)
        self._template = chat_template
        options = options_of(_library.ModelOptions, "model_options_init")
        options.precision = _precision(precision)
        self._handle = Handle("model", "model_open", os.fsencode(path), c.byref(options))
        self._chat = self._full = None

    @property
    def tokenizer(self):
        """The tokenizer."""
        return Tokenizer(handle=Handle("tokenizer", "model_tokenizer", handle=self._handle.pair))

    @property
    def spec(self):
        """The architecture, as a dict."""
        text = c.c_char_p()
        call("model_spec", c.byref(text), handle=self._handle.pair)
        return json.loads(text.value)

    def _options(self, given, on_text):
        made = options_of(_library.GenerateOptions, "generate_options_init", self._handle.pointer)
        made.seed = random.getrandbits(64)
        numbers = (c.c_float, c.c_int64, c.c_int32, c.c_uint64)
        known = {
            name for name, kind in made._fields_ if kind in numbers and not name.endswith("_count")
        }
        for name, value in given.items():
            if name == "stop":
                texts = [value] if isinstance(value, str) else list(value)
                made.stop = (c.c_char_p * len(texts))(*(text.encode() for text in texts))
                made.stop_count = len(texts)
            elif name in known:
                setattr(made, name, value)
            else:
                raise TypeError(
                    f"{name}: unknown keyword argument; expected one of {', '.join(sorted(known))}, stop"
                )
        failed = []

        def receive(piece, size, _):
            try:
                return on_text(c.string_at(piece, size).decode()) is not False
            except BaseException as error:  # raised by the caller
                failed.append(error)
                return 0

        made.on_text = (
            _library.TextCallback(receive) if on_text else _library.TextCallback(lambda *_: 1)
        )
        return made, failed

    def samples(self, prompt, *, on_text=None, **options):
        """Returns a list of one continuation, with ids and log-probabilities."""
        made, failed = self._options(options, on_text)
        result = _library.Generation(size=c.sizeof(_library.Generation))
        if isinstance(prompt, str):
            data = prompt.encode()
            given, name = (data, c.c_size_t(len(data))), "model_generate"
        else:
            given, name = (_ids(prompt), c.c_size_t(len(prompt))), "model_generate_ids"
        call(name, *given, c.byref(made), c.byref(result), handle=self._handle.pair)
        if failed:
            raise failed[0]
        return [Generation(result)]

    def generate(self, prompt, **options):
        """Continues a prompt, and returns the new text; of a list of prompts, a list."""
        if isinstance(prompt, (list, tuple)) and not (prompt and isinstance(prompt[0], int)):
            return [self.generate(each, **options) for each in prompt]
        return self.samples(prompt, **options)[0].text

    def stream(self, prompt, **options):
        """Returns an iterator over the pieces of a continuation, which are texts here."""
        pieces, closed = queue.Queue(), []

        def run():
            try:
                self.generate(
                    prompt, on_text=lambda piece: pieces.put(piece) or not closed, **options
                )
                pieces.put(None)
            except BaseException as error:
                pieces.put(error)

        threading.Thread(target=run, daemon=True).start()
        try:
            while (piece := pieces.get()) is not None:
                if isinstance(piece, BaseException):
                    raise piece
                yield piece
        finally:
            closed.append(True)

    def chat(self, messages, *, tools=None, **options):
        """Answers a conversation; returns the main parts of the server's dict."""
        if self._chat is None:
            template = None if self._template is None else os.fsencode(self._template)
            self._chat = Handle("chat", "chat_open", template, handle=self._handle.pair)
        given = (_library.Message * len(messages))()
        for each, message in zip(given, messages):
            content = (message.get("content") or "").encode()
            more = {key: value for key, value in message.items() if key not in ("role", "content")}
            each.role, each.content, each.content_size = (
                message["role"].encode(),
                content,
                len(content),
            )
            each.members = json.dumps(more).encode() if more else None
        chat = options_of(_library.ChatOptions, "chat_options_init")
        chat.tools = json.dumps(tools).encode() if tools else None
        made, _ = self._options(options, None)
        result = _library.Generation(size=c.sizeof(_library.Generation))
        call(
            "chat_generate",
            given,
            c.c_size_t(len(given)),
            c.byref(chat),
            c.byref(made),
            c.byref(result),
            handle=self._chat.pair,
        )
        generation = Generation(result)
        message = {"role": "assistant", "content": generation.text}
        finish = "length" if generation.finish == "length" else "stop"
        usage = {
            "prompt_tokens": generation.prompt_tokens,
            "completion_tokens": len(generation.ids),
        }
        choice = {"index": 0, "message": message, "finish_reason": finish}
        return {
            "object": "chat.completion",
            "model": os.path.basename(self.path),
            "choices": [choice],
            "usage": usage,
        }

    def prompt_ids(self, prompt):
        """Returns the ids of a prompt, with the special tokens that the tokenizer adds."""
        data, ids, count = prompt.encode(), c.POINTER(c.c_int32)(), c.c_size_t()
        call(
            "model_prompt_ids",
            data,
            c.c_size_t(len(data)),
            c.byref(ids),
            c.byref(count),
            handle=self._handle.pair,
        )
        return ids[: count.value]

    def score(self, text):
        """Returns the log-probability of each token given those before it, and an empty list."""
        ids = self.prompt_ids(text) if isinstance(text, str) else list(text)
        scores = (c.c_float * len(ids))()
        call("model_score", _ids(ids), c.c_size_t(len(ids)), scores, handle=self._handle.pair)
        return list(scores), []

    def trace(self, text, *, what=None, layers=None, gradients=False):
        """Runs the model once and returns its intermediate results as NumPy arrays by name."""
        if self._full is None:
            self._full = Model(self.path, precision="full")
        options = options_of(_library.TraceOptions, "trace_options_init")
        data = text.encode()
        options.text, options.text_size, options.gradients = data, len(data), gradients
        if what:
            options.what = (what if isinstance(what, str) else ",".join(what)).encode()
        if layers:
            options.layers = layers.encode()
        with tempfile.TemporaryDirectory() as folder:
            out = os.path.join(folder, "trace.safetensors")
            call("model_trace", c.byref(options), out.encode(), handle=self._full._handle.pair)
            return _arrays(out)


def _arrays(path):
    """The tensors of a file of safetensors."""
    import numpy as np

    with open(path, "rb") as file:
        data = file.read()
    size = int.from_bytes(data[:8], "little")
    types = {"F32": "float32", "F64": "float64", "F16": "float16", "I32": "int32", "I64": "int64"}
    arrays = {}
    for name, entry in json.loads(data[8 : 8 + size]).items():
        if name == "__metadata__":
            continue
        begin, end = (8 + size + offset for offset in entry["data_offsets"])
        arrays[name] = (
            np.frombuffer(data[begin:end], types[entry["dtype"]]).reshape(entry["shape"]).copy()
        )
    return arrays


class Encoder:
    """Computes vectors of texts. One thread at a time may use it."""

    def __init__(self, path, *, precision="stored"):
        self.path = os.fspath(path)
        options = options_of(_library.EmbedderOptions, "embedder_options_init")
        options.precision = _precision(precision)
        self._handle = Handle("embedder", "embedder_open", os.fsencode(path), c.byref(options))

    @property
    def width(self):
        """The elements of a vector."""
        return library.fovea_embedder_width(self._handle.pointer)

    def encode(
        self,
        texts,
        *,
        prompt_name=None,
        prompt=None,
        normalize=None,
        batch_size=None,
        dimensions=0,
        truncate=True,
    ):
        """Returns the vector of a text, float32 [width], or of texts, float32 [texts, width]."""
        import numpy as np

        rows = [texts] if isinstance(texts, str) else list(texts)
        options = options_of(_library.EmbedOptions, "embed_options_init")
        options.prompt_name = None if prompt_name is None else prompt_name.encode()
        options.prompt = None if prompt is None else prompt.encode()
        options.dimensions, options.truncate = dimensions, truncate
        options.normalise = -1 if normalize is None else int(normalize)
        vectors = np.empty((len(rows), dimensions or self.width), np.float32)
        data = [row.encode() for row in rows]
        call(
            "embedder_embed",
            (c.c_char_p * len(data))(*data),
            (c.c_size_t * len(data))(*map(len, data)),
            c.c_size_t(len(data)),
            c.byref(options),
            vectors.ctypes.data_as(c.POINTER(c.c_float)),
            c.c_size_t(vectors.size),
            handle=self._handle.pair,
        )
        return vectors[0] if isinstance(texts, str) else vectors


class TrainResult:
    """The result of a run."""

    def __init__(self, made):
        for name, _ in made._fields_[1:]:
            setattr(self, name, getattr(made, name))
        self.interrupted, self.stopped_early = bool(self.interrupted), bool(self.stopped_early)


class Run:
    """A finished or interrupted run: its result and its model."""

    def __init__(self, out, result):
        self.out, self.result = out, result

    @property
    def model(self):
        """The model with the best weights."""
        return Model(self.out)


def _text(value):
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (list, tuple)):
        return ",".join(map(str, value))
    return str(value)


def train(data=None, out="", *, on_step=None, **options):
    """Trains a Transformer, and writes it to the directory `out`; the options are those of `fovea train`.

    data, labels and pairs are paths here. on_step(progress) is called after each step; False ends the run.
    """
    given = {name[:-1] if name.endswith("_") else name: value for name, value in options.items()}
    pairs = []
    for name, value in {"data": data, **given, "out": out}.items():
        if value is None:
            continue
        several = isinstance(value, (list, tuple)) and all(
            isinstance(item, (str, os.PathLike)) for item in value
        )
        for item in value if several else [value]:
            pairs.append((name.encode(), _text(item).encode()))
    failed = []

    def step(progress, _):
        try:
            return on_step is None or on_step(progress.contents) is not False
        except BaseException as error:  # raised below
            failed.append(error)
            return 0

    result = _library.TrainResult(size=c.sizeof(_library.TrainResult))
    callback = _library.TrainCallback(step)
    call(
        "train",
        (_library.Option * len(pairs))(*pairs),
        c.c_size_t(len(pairs)),
        callback,
        None,
        c.byref(result),
    )
    if failed:
        raise failed[0]
    return Run(os.fspath(out), TrainResult(result))


def finetune(model, data=None, out="", **options):
    """Trains a model that exists; the other arguments are those of train()."""
    return train(data, out, from_=model.path if isinstance(model, Model) else model, **options)


def load(name, **options):
    """Opens a model by its path."""
    return Model(name, **options)
