"""The cost of models and of their training, before anything runs."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from . import _fovea
from ._docs import documented
from ._hub import resolved

if TYPE_CHECKING:
    from typing import Unpack

    from ._hub import Path
    from ._options import PlanOptions


@documented("plan")
def plan(model: Any, **options: Unpack[PlanOptions]) -> _fovea.Plan:
    """Returns parameters, FLOPs, memory and the cost of training of a model.

    model: a Spec, the name of a preset, a Model, or the path of a model, whose config is read.
    """
    return _fovea.plan(_spec_of(model), **options)


@documented("plan")
def plan_hosts(of: _fovea.Plan, **options: Unpack[PlanOptions]) -> list[_fovea.HostsStep]:
    """Returns the time of a training step on 1 to `hosts` machines."""
    return _fovea.plan_hosts(of, **options)


@documented("plan")
def inference_memory(
    path: Path, *, precision: str = "stored", **options: Unpack[PlanOptions]
) -> _fovea.InferenceMemory:
    """Returns the memory of a process that runs a model on disk."""
    return _fovea.inference_memory(resolved(path), precision, **options)


@documented("plan")
def flops_of_hours(hours: float, **options: Unpack[PlanOptions]) -> float:
    """Returns the FLOPs of some hours; without `speed`, that of this machine is measured."""
    return _fovea.flops_of_hours(hours, **options)


def _spec_of(model: Any) -> _fovea.Spec:
    if isinstance(model, _fovea.Spec):
        return model
    if hasattr(model, "spec"):
        return model.spec  # type: ignore[no-any-return]
    if model in _fovea.preset_names():
        spec = _fovea.Spec(model)
        return spec if spec.vocabulary else _fovea.Spec(model, vocabulary=256)  # of bytes
    return _fovea.Spec.of_model(resolved(os.fspath(model)))
