"""Named ways to prefer one node over another for a pod that comes alone.

``least-stranded``  the potential: the fewest GPUs stranded under the learned mix (default)
``binpack``         the node with the least GPU left, then the least CPU
``spread``          the node with the most GPU left, then the most CPU
``weighted``        a weighted mean of three shares, each 0..1, the highest wins:

- memory: GPU memory in use on the node afterwards. Counted by milli-GPU, as shared devices
  divide their memory,
- compute: devices in use afterwards, a shared one counts as used,
- communication: the devices asked for among those that are free, so that a request takes a
  free set that it fills and large free sets stay together.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

import numpy as np

from placement.scoring.holes import Floats
from placement.scoring.shape import DEVICE, Shape
from placement.scoring.stock import Stock


class Profile(StrEnum):
    """What the nodes are ordered by."""

    LEAST_STRANDED = "least-stranded"
    BINPACK = "binpack"
    SPREAD = "spread"
    WEIGHTED = "weighted"


@dataclass(frozen=True, slots=True)
class Weights:
    """Of the profile ``weighted``; 0 or more, not all 0. Defaults: Volcano users' habit."""

    gpu_memory: float = 1.0
    gpu_compute: float = 0.8
    inter_gpu_comms: float = 0.5


@dataclass(frozen=True, slots=True)
class Scoring:
    """A profile and its weights."""

    profile: Profile = Profile.LEAST_STRANDED
    weights: Weights = Weights()


DEFAULT: Final = Scoring()

_CPU_SHARE: Final = 1e-3
"""CPU breaks ties of binpack and spread: a full node's CPU weighs a thousandth of a device."""


def preference(stock: Stock, shape: Shape, scoring: Scoring) -> Floats:
    """Return float64[n], the higher the better, for every profile but ``least-stranded``.

    Does not look at whether the shape fits.
    """
    if scoring.profile is Profile.WEIGHTED:
        return _weighted(stock, shape, scoring.weights)
    most = max(int(stock.cpu.max(initial=0)), 1)
    left: Floats = stock.holes.sum(axis=1) / DEVICE + _CPU_SHARE * stock.cpu / most
    return left if scoring.profile is Profile.SPREAD else -left


def _weighted(stock: Stock, shape: Shape, weights: Weights) -> Floats:
    installed = np.maximum(stock.installed, 1)
    memory = 1.0 - (stock.holes.sum(axis=1) - shape.gpu) / (DEVICE * installed)
    opened = shape.devices if not shape.fractional else 0
    compute = 1.0 - (stock.whole - opened) / installed
    together = np.minimum(shape.devices / np.maximum(stock.whole, 1), 1.0)
    parts = (weights.gpu_memory, weights.gpu_compute, weights.inter_gpu_comms)
    total: Floats = parts[0] * memory + parts[1] * compute + parts[2] * together
    return total / sum(parts)
