"""Layers, models and optimisers for loops of one's own."""

from ._fovea.nn import *
