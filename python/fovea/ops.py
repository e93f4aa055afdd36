"""The differentiable ops, with the formulas of docs/core.md."""

from ._fovea.ops import *
