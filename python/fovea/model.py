"""Models: text, chats, labels, translations, speech, and what happens inside."""

from __future__ import annotations

import fnmatch
import functools
import json
import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, overload

from . import _fovea
from ._docs import documented
from ._hub import adapters_of, resolved

if TYPE_CHECKING:
    from typing import Unpack

    from numpy.typing import NDArray

    from ._hub import Path
    from ._options import (
        ClassifyOptions,
        ConvertOptions,
        ExplainOptions,
        GenerateOptions,
        TraceOptions,
        TranscribeOptions,
        TranslateOptions,
    )

    Array = NDArray[Any]
    Ids = Sequence[int]
    Head = tuple[int, int] | tuple[str, int, int]


class Model:
    """A Transformer with its tokenizer. Threads may share a model; copies share the weights."""

    def __init__(
        self,
        path: Path,
        *,
        precision: str = "stored",
        cache: str | None = None,
        adapters: Path | Sequence[Path] | Mapping[str, float] | None = None,
        mmproj: Path = "",
        chat_template: Path = "",
        mute: Iterable[Head] = (),
    ) -> None:
        """Opens a Hugging Face directory, a .gguf file or the directory of an adapter.

        precision: of the weights in memory: stored (as in the file), full (fp32, mapped; for
        gradients), fp32, bf16, int8 or int4. cache: of the keys and values: fp32, bf16 or int8.
        adapters: low-rank adapters, with weights if it is a dict. mmproj: a .gguf file with the
        encoder of images. mute: heads whose output is zero, as (layer, head) or ("encoder" or
        "cross", layer, head). Raises BadFile or Unsupported.
        """
        self.path = resolved(path)
        self._how: dict[str, Any] = {"cache": cache, "adapters": adapters_of(adapters)}
        self._precision = precision
        self._mmproj = os.fspath(mmproj)
        self._chat_template = os.fspath(chat_template)
        self._mute = _heads(mute)
        self._model = self._opened(precision)
        self._full_model: _fovea.Model | None = None
        self._labels: _fovea.Classifier | None = None
        self._served: tuple[int, _fovea.Service] | None = None

    def _opened(self, precision: str) -> _fovea.Model:
        model = _fovea.Model.open(self.path, precision, mmproj=self._mmproj, **self._how)
        return model.without_heads(self._mute) if self._mute else model

    # ---- Facts ----

    @property
    def spec(self) -> _fovea.Spec:
        """The architecture."""
        return self._model.spec

    @property
    def tokenizer(self) -> _fovea.Tokenizer:
        """The tokenizer. Raises InvalidArgument if the model has none."""
        if (tokenizer := self._model.tokenizer) is None:
            raise _fovea.InvalidArgument(f"{self.path}: has no tokenizer; expected tokenizer.json")
        return tokenizer

    @property
    def parameters(self) -> int:
        """The number of parameters; tied weights count once."""
        return self._model.parameters

    @property
    def weight_bytes(self) -> int:
        """The bytes of the weights in memory or in the mapped file."""
        return self._model.weight_bytes

    @property
    def weight_formats(self) -> list[tuple[str, int]]:
        """The formats of the weights in memory, with their bytes."""
        return self._model.weight_formats

    @property
    def warnings(self) -> list[str]:
        """Suspicious but harmless contents of the files."""
        return self._model.warnings

    def __repr__(self) -> str:
        return f"Model({self.path!r}, {self.parameters:,} parameters)"

    def _repr_html_(self) -> str:
        from .display import model_html

        return model_html(self)

    # A pickle holds the path and how it was opened, not the weights.
    def __getstate__(self) -> dict[str, Any]:
        kept = {"_model": None, "_full_model": None, "_labels": None, "_served": None}
        return {**self.__dict__, **kept}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._model = self._opened(self._precision)

    # ---- Text ----

    @overload
    def generate(  # type: ignore[overload-overlap]
        self,
        prompt: str | Ids,
        *,
        images: Sequence[Any] = (),
        on_text: Callable[[str], bool | None] | None = None,
        parse_special: bool = False,
        **options: Unpack[GenerateOptions],
    ) -> str: ...
    @overload
    def generate(
        self,
        prompt: Sequence[str],
        *,
        parse_special: bool = False,
        **options: Unpack[GenerateOptions],
    ) -> list[str]: ...

    @documented("generate")
    def generate(self, prompt: Any, **options: Any) -> Any:
        """Continues a prompt, and returns the new text; of a list of prompts, a list.

        The prompts of a list run together, and have the bits of calls one by one. images: paths,
        bytes, arrays or images of PIL, for a model that reads them. on_text: called with each
        piece of text as soon as it is final; False ends the generation. parse_special: names of
        special tokens in the prompt are read as such. Without a seed, each call differs if the
        temperature is above 0. Further options: schema (a JSON Schema, as dict or text), regex,
        gbnf and choices (a list of texts) constrain the text; logits(ids, logits) may change the logits, float32 [V], in
        place; logit_bias: {id: number}; draft: a smaller Model that proposes tokens.
        """
        if _is_batch(prompt):
            return [generation.text for generation in self._together(prompt, options)]
        if options.get("generations", 1) != 1:
            raise _fovea.InvalidArgument("generations: not 1; expected Model.samples()")
        return self.samples(prompt, **options)[0].text

    @documented("generate")
    def samples(
        self,
        prompt: str | Ids,
        *,
        images: Sequence[Any] = (),
        on_text: Callable[[str], bool | None] | None = None,
        parse_special: bool = False,
        **options: Unpack[GenerateOptions],
    ) -> list[_fovea.Generation]:
        """Returns `generations` continuations with their ids, log-probabilities and times.

        The arguments are those of generate().
        """
        return _fovea.generate(
            self._model, prompt, list(images), on_text, parse_special, **_plain(options)
        )

    @documented("generate")
    def stream(
        self,
        prompt: str | Ids,
        *,
        images: Sequence[Any] = (),
        parse_special: bool = False,
        **options: Unpack[GenerateOptions],
    ) -> Iterator[_fovea.StreamedToken]:
        """Returns an iterator over the tokens of a continuation.

        Each has text, token, logprob and seconds. The text ends when the context is full. The
        other arguments are those of generate().
        """
        return _fovea.stream(
            self._service(), self._model, prompt, list(images), parse_special, **_plain(options)
        )

    def _together(self, prompts: Sequence[Any], options: dict[str, Any]) -> list[_fovea.Generation]:
        parse_special = options.pop("parse_special", False)
        return _fovea.generate_together(
            self._service(), self._model, list(prompts), parse_special, **_plain(options)
        )

    @overload
    def chat(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        tools: Sequence[Mapping[str, Any]] | None = None,
        schema: Mapping[str, Any] | None = None,
        stream: None = None,
        **fields: Any,
    ) -> dict[str, Any]: ...
    @overload
    def chat(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        tools: Sequence[Mapping[str, Any]] | None = None,
        schema: Mapping[str, Any] | None = None,
        stream: bool,
        **fields: Any,
    ) -> Iterator[dict[str, Any]]: ...

    def chat(self, messages: Any, **fields: Any) -> Any:
        """Answers a conversation, and returns the dict of the server's /v1/chat/completions.

        messages: a list of {"role": ..., "content": ...}. tools: descriptions of functions that
        the model may call. schema: a JSON Schema that the answer fulfils. stream=True returns an
        iterator of chunks instead. The other fields are those of the route (docs/serve.md), such
        as max_tokens, temperature and seed.
        """
        if (schema := fields.pop("schema", None)) is not None:
            described = {"name": "answer", "schema": schema}
            fields["response_format"] = {"type": "json_schema", "json_schema": described}
        body = {"messages": list(messages), **fields}
        return self.request("/v1/chat/completions", body)

    def render(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        tools: Sequence[Mapping[str, Any]] | None = None,
        **variables: Any,
    ) -> str:
        """Returns the text of a conversation, as the model's chat template writes it."""
        given = [json.dumps(each) for each in (list(messages), tools, variables)]
        return _fovea.render_chat(self._model, self.path, self._chat_template, *given)

    def request(self, route: str, body: Mapping[str, Any]) -> Any:
        """Answers the request of a POST route of `fovea serve` without HTTP.

        Returns the parsed response, or an iterator of parsed events if body["stream"] is true.
        """
        body = {key: value for key, value in body.items() if value is not None}
        pieces = _fovea.answer(self._service(), route, json.dumps(body))
        if body.get("stream"):
            return _events(pieces)
        return json.loads("".join(pieces))

    def _service(self) -> _fovea.Service:
        """The engine; one for each process, since its threads do not survive fork()."""
        process = os.getpid()
        if self._served is None or self._served[0] != process:
            name = os.path.basename(os.path.normpath(self.path))
            service = _fovea.Service.open(
                self.path, name, self._model, self._chat_template, self._precision
            )
            self._served = (process, service)
        return self._served[1]

    def score(self, text: str | Ids, *, alternatives: int = 0) -> tuple[Array, list[Any]]:
        """Returns the log-probability of each token given those before it.

        -> (float32 [tokens], 0 for the first; for each token its `alternatives` most likely
        rivals as pairs (id, log-probability)). The model must be a decoder.
        """
        return _fovea.score(self._model, text, alternatives)

    def prompt_ids(self, prompt: str) -> list[int]:
        """Returns the ids of a prompt, with the special tokens that the tokenizer adds."""
        return _fovea.prompt_ids(self._model, prompt)

    @property
    def end_ids(self) -> list[int]:
        """The tokens that end a text."""
        return _fovea.end_ids(self._model)

    # ---- Labels, translations, speech ----

    @documented("classify")
    def classify(
        self, texts: str | Sequence[str | tuple[str, str]], **options: Unpack[ClassifyOptions]
    ) -> Any:
        """Labels texts by the model's head.

        Of a sequence classifier: Classifications; of a tagger, the entities of each text; of a
        masked language model, the candidates for the masks; of a model that answers questions,
        texts are pairs (question, context). For a single text, the result of this text.
        """
        single = isinstance(texts, (str, tuple))
        given: Any = [texts] if single else list(texts)
        labels = self.classifier()
        how = {"texts": "classify", "words": "find_entities", "answers": "answer"}
        found = getattr(labels, how.get(labels.task, "fill_masks"))(given, **options)
        return found[0] if single else found

    def classifier(self) -> _fovea.Classifier:
        """Returns the classifier that this model is."""
        if self._labels is None:
            self._labels = _fovea.Classifier.of(self._model)
        return self._labels

    @overload
    def translate(  # type: ignore[overload-overlap]
        self, text: str, **options: Unpack[TranslateOptions]
    ) -> str: ...
    @overload
    def translate(self, text: Sequence[str], **options: Unpack[TranslateOptions]) -> list[str]: ...

    @documented("translate")
    def translate(self, text: Any, **options: Any) -> Any:
        """Translates a line, or a list of lines, by an encoder-decoder."""
        lines = [text] if isinstance(text, str) else list(text)
        found = [str(each) for each in self.translations(lines, **options)]
        return found[0] if isinstance(text, str) else found

    @documented("translate")
    def translations(
        self, lines: Sequence[str], **options: Unpack[TranslateOptions]
    ) -> list[_fovea.Translation]:
        """Translates lines; each result has the hypotheses, their scores and alignments."""
        return _fovea.translate(self._model, list(lines), **options)

    @property
    def languages(self) -> list[tuple[str, str]]:
        """The pairs (source, target) of a translation model."""
        return _fovea.translation_directions(self._model)

    @documented("transcribe")
    def transcribe(
        self, audio: Path | bytes | Array, **options: Unpack[TranscribeOptions]
    ) -> _fovea.Transcription:
        """Converts speech to text; returns an iterator of segments.

        audio: a file, its bytes, or samples float32 at 16 kHz. Each segment has start, end and
        text; after the last one, the iterator's `result` is the whole transcript.
        """
        return _fovea.transcribe(self._model, audio, **options)

    def words_in_audio(self, audio: Path | bytes | Array, language: str = "") -> dict[str, Any]:
        """Transcribes the first window of audio, and returns its spectrogram float32 [bands, frames],
        its words, and their similarity with each 20 ms of audio, float32 [words, positions]."""
        return _fovea.words_in_audio(self._model, audio, language)

    # ---- What happens inside ----

    @property
    def _full(self) -> _fovea.Model:
        """The model with weights in fp32, as the command line traces it."""
        if self._precision == "full":
            return self._model
        if self._full_model is None:
            self._full_model = self._opened("full")
        return self._full_model

    @documented("trace")
    def trace(
        self, text: str | Ids | None = None, **options: Unpack[TraceOptions]
    ) -> dict[str, Array]:
        """Runs the model once and returns its intermediate results as NumPy arrays by name.

        By default logits, hidden.{i} and attention.{i}; `what` selects others by names with
        wildcards (docs/inspect.md), also those of TransformerLens, such as
        "blocks.3.attn.hook_q", which is the query before the rotation. The weights are fp32.
        """
        return self.run(text, **options)

    @documented("trace")
    def run(
        self,
        text: str | Ids | None = None,
        *,
        hooks: Mapping[str, Callable[[Array], Array | None]] | None = None,
        mute: Iterable[Head] = (),
        **options: Unpack[TraceOptions],
    ) -> dict[str, Array]:
        """Runs the model once with hooks, and returns what trace() returns.

        hooks: functions by the names of the values that they see, which may have wildcards.
        f(array) returns None, or another array, which the rest of the run reads instead. mute:
        heads whose output is zero, as for Model().
        """
        given: dict[str, Any] = dict(options)
        if isinstance(text, str):
            given["text"] = text
        elif text is not None:
            given["ids"] = list(text)
        functions = {_full_name(name): f for name, f in (hooks or {}).items()}
        asked = given.get("what") or (
            ["hidden.*", "attention.*", "logits"] if not functions else []
        )
        what = [asked] if isinstance(asked, str) else list(asked)
        names = [_full_name(each) for item in what for each in item.split(",")]
        if functions and not what:
            names = ["logits"]
        if names or functions:
            given["what"] = names + list(functions)
        model = self._full
        if heads := _heads(mute):
            model = model.without_heads(heads)
        hook = functools.partial(_hooked, functions) if functions else None
        if not functions and not options.get("what"):
            given.pop("what", None)
        return _fovea.trace(model, hook, **given)

    def inspect(
        self,
        text: str | Ids,
        *,
        target: str | Ids = "",
        mute: Iterable[Head] = (),
        mute_neurons: Iterable[Head] = (),
    ) -> _fovea.Inspection:
        """Runs the model on a text, and keeps the results for queries: maps, head_scores, lens, ...

        target: the output of an encoder-decoder; without it, the greedy one.
        """
        return _fovea.Inspection(self._full, text, target, _heads(mute), _heads(mute_neurons))

    @documented("explain", "classify")
    def explain(
        self, text: str | Ids, *, context: str = "", **options: Unpack[ExplainOptions]
    ) -> list[_fovea.Explanation]:
        """Attributes the next token, the label or the entities to the tokens of a text.

        context: of a model that answers questions, the text in which it looks for the answer.
        """
        return _fovea.explain(self._full, text, context, **options)

    def induction_scores(self, seed: int = 0) -> list[list[float]]:
        """Returns the induction scores of all heads, [layers][heads]."""
        return _fovea.induction_scores(self._full, seed)

    # ---- Other weights ----

    def save(self, folder: Path) -> None:
        """Writes a Hugging Face directory, with adapters merged into the weights."""
        self._model.save(os.fspath(folder))

    def with_weights(self, weights: Any) -> Model:
        """Returns this model with the weights of an nn.Transformer."""
        return self._changed(_fovea.nn.with_weights(self._model, weights))

    def with_adapters(self, adapters: Path | Sequence[Path] | Mapping[str, float]) -> Model:
        """Returns this model with the weighted sum of adapters; it shares the weights."""
        return self._changed(self._model.with_adapters(adapters_of(adapters)))

    def without_heads(self, heads: Iterable[Head]) -> Model:
        """Returns this model with heads whose output is zero; it shares the weights."""
        return self._changed(self._model.without_heads(_heads(heads)))

    def transformer(self) -> Any:
        """Returns an nn.Transformer with a copy of the weights, for loops of one's own."""
        return _fovea.nn.Transformer(self._full)

    def _changed(self, model: _fovea.Model) -> Model:
        other = object.__new__(Model)
        other.__dict__.update(self.__dict__)
        other._model, other._full_model, other._labels, other._served = model, model, None, None
        return other


def load(name: Path, **options: Any) -> Model:
    """Opens a model by its path or its name on the Hugging Face Hub; see Model for the options."""
    return Model(name, **options)


def open_snapshot(folder: Path, step: int) -> Model:
    """Opens the model of a snapshot of a training run."""
    model = object.__new__(Model)
    model.__dict__.update(
        path=os.fspath(folder),
        _how={"cache": None, "adapters": []},
        _precision="full",
        _mmproj="",
        _chat_template="",
        _mute=[],
        _model=_fovea.open_snapshot(os.fspath(folder), step),
        _full_model=None,
        _labels=None,
        _served=None,
    )
    return model


@documented("convert")
def convert(
    source: Path,
    target: Path,
    *,
    adapters: Path | Sequence[Path] | Mapping[str, float] | None = None,
    **options: Unpack[ConvertOptions],
) -> _fovea.Conversion:
    """Converts a model to another format or precision: a directory or a .gguf file."""
    return _fovea.convert(resolved(source), os.fspath(target), adapters_of(adapters), **options)


def _is_batch(prompt: Any) -> bool:
    """Whether it is a list of prompts, not a text or a list of ids."""
    if isinstance(prompt, str) or not isinstance(prompt, Sequence):
        return False
    return len(prompt) == 0 or not isinstance(prompt[0], int)


def _plain(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options with values that the library's module takes."""
    plain = dict(options)
    if isinstance(plain.get("draft"), Model):
        plain["draft"] = plain["draft"]._model
    if isinstance(plain.get("schema"), (dict, bool)):
        plain["schema"] = json.dumps(plain["schema"])
    return plain


def _heads(heads: Iterable[Head]) -> list[tuple[str, int, int]]:
    return [head if len(head) == 3 else ("self", *head) for head in heads]


def _full_name(name: str) -> str:
    """A name of TransformerLens may lack "hook_": blocks.3.attn.pattern."""
    before, dot, last = name.rpartition(".")
    if name.startswith("blocks.") and "hook_" not in name and last != "*":
        return f"{before}{dot}hook_{last}"
    return name


def _hooked(functions: Mapping[str, Callable[[Any], Any]], name: str, array: Any) -> Any:
    changed = None
    for pattern, function in functions.items():
        if name == pattern or fnmatch.fnmatchcase(name, pattern):
            given = function(array if changed is None else changed)
            changed = changed if given is None else given
    return changed


def _events(pieces: Iterator[str]) -> Iterator[dict[str, Any]]:
    """The events of a stream, without the last one, "[DONE]"."""
    text = ""
    for piece in pieces:
        text += piece
        while "\n\n" in text:
            event, text = text.split("\n\n", 1)
            data = event.removeprefix("data: ")
            if event.startswith("data: ") and data != "[DONE]":
                yield json.loads(data)


def write_modeling(folder: Path) -> None:
    """Writes modeling_fovea.py into a directory of fovea's own type, for transformers.

    AutoModelForCausalLM.from_pretrained(folder, trust_remote_code=True) then has the same logits.
    Raises Unsupported, with the field, unless the model is a decoder of attention and feed-forward
    layers.
    """
    path = os.path.join(os.fspath(folder), "config.json")
    with open(path, encoding="utf-8") as file:
        config = json.load(file)
    if config.get("model_type") != "fovea":
        raise _fovea.Unsupported(
            f"{path}: model_type is {config.get('model_type')}, which transformers has itself; "
            "expected fovea"
        )
    stack = config["spec"].get("decoder")
    if stack is None or "encoder" in config["spec"]:
        raise _fovea.Unsupported(f"{path}: has an encoder; expected a decoder alone")
    for mixer in stack["mixers"]:
        if mixer != "attention":
            raise _fovea.Unsupported(f"{path}: decoder.mixers: {mixer}; expected attention")
    config["auto_map"] = {
        "AutoConfig": "modeling_fovea.FoveaConfig",
        "AutoModelForCausalLM": "modeling_fovea.FoveaForCausalLM",
    }
    source = os.path.join(os.path.dirname(__file__), "modeling_fovea.py")
    shutil.copyfile(source, os.path.join(os.fspath(folder), "modeling_fovea.py"))
    part = path + ".part"
    with open(part, "w", encoding="utf-8") as file:
        json.dump(config, file, indent=2)
        file.write("\n")
    os.replace(part, path)
