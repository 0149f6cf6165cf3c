"""Whether a pod has devices for itself, or shares those that it has with others.

::

    Whole    a device of its own, unless the node lists each device several times (replicas)
    Milli    a share; all thousandths are a device of its own
    Memory   a share; all memory or all cores are a device of its own
    Shared   a replica, so a share
    Mig      an instance, so a share of a GPU

A network card counts like any other device.
"""

from typing import assert_never

from muster.cluster.devices.needs import MILLI, asks_of, share_of
from muster.cluster.devices.onenode import Layout
from muster.cluster.specs.deviceasks import DeviceAsk, Memory, MigAsk, Milli, SharedAsk, Whole
from muster.cluster.specs.deviceshape import DeviceShape
from muster.cluster.specs.podconstraints import PodClass

_WHOLE_PERCENT = 100


def is_dedicated(pod_class: PodClass, layout: Layout) -> bool:
    """Return whether a pod has a device for itself on a node with these devices.

    ``layout``: empty where no device of the node is known; then its asks alone decide.
    """
    return any(_is_alone(ask, layout) for ask in asks_of(pod_class))


def _is_alone(ask: DeviceAsk, layout: Layout) -> bool:
    match ask:
        case SharedAsk() | MigAsk():
            return False
        case Whole() | Milli() | Memory():
            shapes = [slot.shape for slot in layout if share_of(ask, slot.shape) is not None]
            return all(_takes_all(ask, shape) for shape in shapes) if shapes else _asks_all(ask)
        case _:
            assert_never(ask)


def _takes_all(ask: DeviceAsk, shape: DeviceShape) -> bool:
    """Return whether an ask leaves nothing of a device for others."""
    share = share_of(ask, shape)
    return share is not None and (share.milli >= MILLI or 0 < shape.memory <= share.memory)


def _asks_all(ask: Whole | Milli | Memory) -> bool:
    match ask:
        case Whole():
            return True
        case Milli():
            return ask.milli >= MILLI
        case Memory():
            return ask.cores >= _WHOLE_PERCENT or (not ask.mib and ask.percent >= _WHOLE_PERCENT)
        case _:
            assert_never(ask)
