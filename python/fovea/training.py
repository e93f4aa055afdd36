"""Training and fine-tuning, with the options of `fovea train`."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from . import _fovea
from ._docs import documented
from ._hub import resolved
from .data import MemoryFiles
from .encoder import Encoder
from .environment import Environment, replies_of
from .model import Model

if TYPE_CHECKING:
    from typing import Unpack

    from ._fovea import Tensor, TrainPlan, TrainProgress, TrainResult
    from ._hub import Path
    from ._options import (
        MineNegativesOptions,
        TrainEmbedderOptions,
        TrainOptions,
        TrainTokenizerOptions,
    )

    Stops = bool | None  # False ends the run
    Loss = Callable[[Tensor, Tensor], Tensor]
    Answer = Mapping[str, Any]

# The fields that may be data in memory.
_DATA = (
    *("data", "labels", "pairs", "images"),
    *("validation_chats", "validation_labels", "validation_pairs", "validation_prompts"),
)


class Run:
    """A finished or interrupted run: its result, its log and its model."""

    def __init__(self, out: str, result: TrainResult) -> None:
        self.out = out
        self.result = result

    @property
    def model(self) -> Model:
        """The model with the best weights."""
        return Model(self.out)

    @property
    def log(self) -> _fovea.RunLog:
        """The curves and settings of the run."""
        return _fovea.read_run(self.out)

    def __repr__(self) -> str:
        return f"Run({self.out!r}, {self.result!r})"

    def _repr_html_(self) -> str:
        from .display import run_html

        return run_html(self)


@documented("train")
def train(
    data: Any = None,
    out: Path = "",
    *,
    preset: str | None = None,
    dropout: float | None = None,
    on_plan: Callable[[TrainPlan], Stops] | None = None,
    on_step: Callable[[TrainProgress], Stops] | None = None,
    on_evaluation: Callable[[TrainProgress], Stops] | None = None,
    loss: Loss | None = None,
    reward: Callable[[Sequence[Answer]], Sequence[float]] | None = None,
    environment: Environment | None = None,
    verbose: bool | None = None,
    **options: Unpack[TrainOptions],
) -> Run:
    """Trains a Transformer, and writes it to the directory `out`.

    The same call resumes a run that was interrupted; Ctrl-C saves a snapshot first.

    data: paths of text files, directories or JSON lines; or texts and records in memory: a list, a
    generator, a data frame of pandas, a table of pyarrow or a data set of `datasets`, whose records
    are texts or dicts with "text", "messages", "prompt" and others (docs/training.md). `labels` and
    `pairs` may be data in memory too: pairs (text, label) and (source, target).

    on_plan, on_step, on_evaluation: called before the first step, after each step, and after each
    step with an evaluation; False ends the run, which then can be resumed.
    loss(logits, labels): returns the loss of training as a sum over the rows, from tensors
    [rows, V] and int32 [rows]; rows whose label is below 0 have no loss.
    reward(answers): of ppo and grpo: returns a number for each answer, a dict with "record",
    "completion" and "tokens".
    environment(episodes): of ppo and grpo: replies to answers, for episodes of several turns; see
    fovea.environment, and fovea.Tools for functions that the model may call.
    verbose: print a line for each evaluation; None = if the output is a terminal.
    preset: the architecture and its options; dropout: all dropouts of the model.
    """
    given = _given(data, options, preset=preset, dropout=dropout)
    given["out"] = os.fspath(out)
    if not given["out"]:
        raise _fovea.InvalidArgument("out: not given; expected the output directory")
    given = _with_files(given)
    report = _reporter(on_step, on_evaluation, verbose)
    try:
        result = _fovea.train(
            given, on_plan, report, None, loss, reward, environment and replies_of(environment)
        )
    except KeyboardInterrupt as stop:
        stop.add_note(f"The run in {given['out']} is saved; the same call resumes it.")
        raise
    return Run(given["out"], result)


def finetune(
    model: Model | Path,
    data: Any = None,
    out: Path = "",
    **options: Any,
) -> Run:
    """Trains a model that exists: all weights, or with `lora` = rank low-rank adapters.

    The task follows from the data and the model: texts, conversations, preferences, labels, pairs,
    or prompts with `objective` = "grpo". The other arguments are those of train().
    """
    path = model.path if isinstance(model, Model) else resolved(model)
    return train(data, out, from_=path, **options)


def plan_training(data: Any = None, out: Path = "", **options: Any) -> TrainPlan:
    """Returns the plan of a run: steps, memory, time. The arguments are those of train()."""
    given = _given(data, options)
    given["out"] = os.fspath(out)
    return _fovea.plan_training(_with_files(given))


def training_example(data: Any = None, **options: Any) -> list[tuple[str, bool]]:
    """Returns the first training text of conversations as parts (text, whether it is trained)."""
    return _fovea.training_example(_given(data, options))


@documented("train_embedder")
def train_embedder(
    model: Path,
    data: Any,
    out: Path,
    *,
    on_plan: Callable[[TrainPlan], Stops] | None = None,
    on_step: Callable[[TrainProgress], Stops] | None = None,
    on_evaluation: Callable[[TrainProgress], Stops] | None = None,
    verbose: bool | None = None,
    **options: Unpack[TrainEmbedderOptions],
) -> TrainResult:
    """Trains an encoder of texts on pairs, triplets or scored pairs; see docs/embed.md."""
    given: dict[str, Any] = {**options, "model": resolved(model), "out": os.fspath(out)}
    given["data"] = MemoryFiles(os.path.join(given["out"], "data")).path_of("data", data)
    return _fovea.train_embedder(given, on_plan, _reporter(on_step, on_evaluation, verbose))


@documented("mine_negatives")
def mine_negatives(
    encoder: Encoder,
    pairs: Any,
    *,
    corpus: Sequence[str] = (),
    reranker: _fovea.Reranker | None = None,
    **options: Unpack[MineNegativesOptions],
) -> _fovea.MinedNegatives:
    """Finds hard negatives of pairs among their positives and further texts, the corpus.

    reranker: scores the candidates; its scores are those of a teacher.
    """
    path = os.fspath(pairs)
    return _fovea.mine_negatives(encoder._embedder, list(corpus), reranker, pairs=path, **options)


@documented("train_tokenizer")
def train_tokenizer(
    data: Path | Sequence[Path], out: Path = "", **options: Unpack[TrainTokenizerOptions]
) -> _fovea.Tokenizer:
    """Trains a tokenizer on text files, and writes it to the directory `out`, if given."""
    files = [data] if isinstance(data, (str, os.PathLike)) else data
    return _fovea.train_tokenizer([os.fspath(file) for file in files], os.fspath(out), **options)


def _given(data: Any, options: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    """The arguments by the names of the fields; `from_` is `from`, which is a word of Python."""
    given = {name.removesuffix("_"): value for name, value in {**options, **more}.items()}
    if data is not None:
        given["data"] = data
    if isinstance(given.get("from"), Model):
        given["from"] = given["from"].path
    return {name: value for name, value in given.items() if value is not None}


def _with_files(given: dict[str, Any]) -> dict[str, Any]:
    files = MemoryFiles(os.path.join(given["out"] or "fovea", "data"))
    return {
        name: files.path_of(name, value) if name in _DATA else value
        for name, value in given.items()
    }


def _reporter(
    on_step: Callable[[TrainProgress], Stops] | None,
    on_evaluation: Callable[[TrainProgress], Stops] | None,
    verbose: bool | None,
) -> Callable[[TrainProgress, bool], bool] | None:
    shows = sys.stderr.isatty() if verbose is None else verbose
    if not (on_step or on_evaluation or shows):
        return None

    def report(now: TrainProgress, evaluated: bool) -> bool:
        goes_on = True
        if shows and evaluated:
            print(_line(now), file=sys.stderr)
        if evaluated and on_evaluation is not None:
            goes_on = on_evaluation(now) is not False
        if on_step is not None:
            goes_on = on_step(now) is not False and goes_on
        return goes_on

    return report


def _line(now: TrainProgress) -> str:
    loss = "" if now.validation_loss is None else f"  val {now.validation_loss:.4f}"
    metrics = "".join(f"  {name} {value:.4g}" for name, value in now.metrics.items())
    return f"step {now.step}/{now.steps}  loss {now.loss:.4f}{loss}{metrics}"
