"""Scoring's view of a snapshot: pod classes as shapes, node columns as a stock, pods as a mix.

The mix is every pod that the model knows, pending, running or finished and not yet deleted.
It is a function of the snapshot alone: nothing is kept beside the model, a restart lists the
same pods and learns the same mix, and a recorded decision replays.

Devices count by resource name: whatever ends in ``/gpu`` (``nvidia.com/gpu``,
``amd.com/gpu`` …), whole devices. What pods take of a part of a device is not in the columns
yet, so holes appear here as soon as it is.
"""

from typing import Final

import numpy as np

from cluster.constraints import PodClass
from cluster.pods import PodState
from cluster.snapshot import Snapshot
from placement.scoring.mix import RequestMix
from placement.scoring.prices import Prices, learn, untrained
from placement.scoring.shape import DEVICE, Shape
from placement.scoring.stock import Ints, Stock
from placement.world import World

GPU_SUFFIX: Final = "/gpu"
_MIB: Final = 1 << 20


def shape_of(pod_class: PodClass) -> Shape:
    """Return what one pod of a class asks for; memory in MiB, rounded up."""
    devices = sum(amount for name, amount in pod_class.requests if name.endswith(GPU_SUFFIX))
    return Shape(
        cpu=pod_class.request("cpu"),
        memory=-(-pod_class.request("memory") // _MIB),
        devices=devices,
        milli=DEVICE if devices else 0,
    )


def mix_of(snapshot: Snapshot) -> RequestMix:
    """Return the requests of all pods of a snapshot; O(pods), without a loop over them."""
    classes = snapshot.pods.pod_class.array()
    known = (snapshot.pods.state.array() != PodState.FREE) & (classes >= 0)
    counts = np.bincount(classes[known], minlength=len(snapshot.classes))
    mix = RequestMix()
    for number in np.flatnonzero(counts).tolist():
        mix.arrived(shape_of(snapshot.classes[number]), int(counts[number]))
    return mix


def stock_of(world: World, rows: Ints) -> Stock:
    """Return what is free on some node rows, in their order."""
    names = [name for name in world.snapshot.nodes.resources if name.endswith(GPU_SUFFIX)]
    free = np.zeros(len(rows), dtype=np.int64)
    installed = np.zeros_like(free)
    for name in names:
        free += np.maximum(world.free(name)[rows], 0)
        installed += world.snapshot.nodes.allocatable(name)[rows]
    most = int(free.max(initial=0))
    holes = np.where(np.arange(most) < free[:, None], DEVICE, 0)
    return Stock(
        cpu=np.maximum(world.free("cpu")[rows], 0),
        memory=np.maximum(world.free("memory")[rows], 0) // _MIB,
        holes=holes,
        models=[""] * len(rows),
        capacity=DEVICE * int(installed.sum()),
        installed=installed,
    )


def prices_of(world: World) -> Prices:
    """Return the prices that a snapshot's own pods and free room make."""
    stock = stock_of(world, np.flatnonzero(world.snapshot.nodes.alive))
    return learn(mix_of(world.snapshot), stock, untrained(stock.holes.shape[1]))
