"""Named ways to prefer one node over another for a pod that comes alone.

``least-stranded``  the potential: the fewest GPUs stranded under the learned mix (default)
``binpack``         the node with the least GPU left, then the least CPU
``spread``          the node with the most GPU left, then the most CPU
``weighted``        a weighted mean of shares, each 0..1, the highest wins:

- memory: GPU memory in use on the node afterwards. Counted by milli-GPU, as shared devices
  divide their memory,
- compute: devices in use afterwards, a shared one counts as used,
- communication: the devices asked for among those that are free, so that a request takes a
  free set that it fills and large free sets stay together.

With weights of their own, 0 by default, the shares of Volcano's plugins ``binpack`` and
``nodeorder`` join them:

- binpack: what is in use afterwards of what the pod asks for, CPU, memory and GPUs weighted,
- most requested, least requested: what is in use, or free, afterwards of CPU and memory,
- balanced: how much alike CPU, memory and GPUs are in use afterwards (1 less the deviation).
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

import numpy as np

from muster.placement.scoring.holes import Floats
from muster.placement.scoring.shape import DEVICE, Shape
from muster.placement.scoring.stock import NodeStock


class Profile(StrEnum):
    """What the nodes are ordered by."""

    LEAST_STRANDED = "least-stranded"
    BINPACK = "binpack"
    SPREAD = "spread"
    WEIGHTED = "weighted"


@dataclass(frozen=True, slots=True)
class Weights:
    """Of the profile ``weighted``; 0 or more, not all 0. Defaults: Volcano users' habit.

    ``binpack_cpu``, ``binpack_memory``, ``binpack_gpu``: of each within ``binpack``.
    """

    gpu_memory: float = 1.0
    gpu_compute: float = 0.8
    inter_gpu_comms: float = 0.5
    binpack: float = 0.0
    most_requested: float = 0.0
    least_requested: float = 0.0
    balanced: float = 0.0
    binpack_cpu: float = 1.0
    binpack_memory: float = 1.0
    binpack_gpu: float = 1.0

    @property
    def total(self) -> float:
        """Sum of the weights of all shares."""
        gpu = self.gpu_memory + self.gpu_compute + self.inter_gpu_comms
        return gpu + self.binpack + self.most_requested + self.least_requested + self.balanced


@dataclass(frozen=True, slots=True)
class Scoring:
    """A profile and its weights."""

    profile: Profile = Profile.LEAST_STRANDED
    weights: Weights = Weights()


DEFAULT: Final = Scoring()

_CPU_SHARE: Final = 1e-3
"""CPU breaks ties of binpack and spread: a full node's CPU weighs a thousandth of a device."""


def preference(stock: NodeStock, shape: Shape, scoring: Scoring) -> Floats:
    """Return float64[n], the higher the better, for every profile but ``least-stranded``.

    Does not look at whether the shape fits.
    """
    if scoring.profile is Profile.WEIGHTED:
        return _weighted(stock, shape, scoring.weights)
    most = max(int(stock.cpu.max(initial=0)), 1)
    left: Floats = stock.holes.sum(axis=1) / DEVICE + _CPU_SHARE * stock.cpu / most
    return left if scoring.profile is Profile.SPREAD else -left


def _weighted(stock: NodeStock, shape: Shape, weights: Weights) -> Floats:
    installed = np.maximum(stock.installed, 1)
    memory = 1.0 - (stock.holes.sum(axis=1) - shape.gpu) / (DEVICE * installed)
    opened = shape.devices if not shape.fractional else 0
    compute = 1.0 - (stock.whole - opened) / installed
    together = np.minimum(shape.devices / np.maximum(stock.whole, 1), 1.0)
    total: Floats = (
        weights.gpu_memory * memory
        + weights.gpu_compute * compute
        + weights.inter_gpu_comms * together
    )
    return (total + _of_node(stock, shape, weights)) / weights.total


def _of_node(stock: NodeStock, shape: Shape, weights: Weights) -> Floats:
    """Return the weighted shares that look at the whole node."""
    cpu = 1.0 - (stock.cpu - shape.cpu) / np.maximum(stock.all_cpu, 1)
    memory = 1.0 - (stock.memory - shape.memory) / np.maximum(stock.all_memory, 1)
    gpus = DEVICE * np.maximum(stock.installed, 1)
    gpu = 1.0 - (stock.holes.sum(axis=1) - shape.gpu) / gpus
    packed = (
        (cpu, weights.binpack_cpu if shape.cpu else 0.0),
        (memory, weights.binpack_memory if shape.memory else 0.0),
        (gpu, weights.binpack_gpu if shape.gpu else 0.0),
    )
    asked = sum(weight for _, weight in packed) or 1.0
    binpack = sum((share * weight for share, weight in packed), np.zeros(stock.nodes)) / asked
    used = (cpu + memory) / 2
    balanced = 1.0 - np.std([cpu, memory, gpu], axis=0)
    found: Floats = (
        weights.binpack * binpack
        + weights.most_requested * used
        + weights.least_requested * (1.0 - used)
        + weights.balanced * balanced
    )
    return found
