"""The ``muster.dev/node-allocations`` annotation: what the kubelet of a node gave to which pod.

The device plugin writes it on its own Node. The extender reads it; where it and a plan differ,
the annotation counts. One compact JSON object, pods by UID, then devices by resource::

    {"version":1,"generation":7,"pods":{"0f6c…":{"nvidia.com/gpu":["GPU-8a…","GPU-c1…"],
                                                 "rdma/hca":["mlx5_0"]}}}

*Names* are those of the model, so a reader needs no table:

====================================  ==========================================================
the kubelet's id                      is written as
====================================  ==========================================================
``GPU-8a…``, ``mlx5_0``               the ``name`` of the device in ``muster.dev/node-topology``
``GPU-8a…::3`` (replica, time slice)  ``GPU-8a…``, once for each replica that the pod has
``MIG-5b…`` of a device that the      ``GPU-8a…/3g.40gb@4``: device, profile, first memory slice,
topology lists with ``placements``    as in ``muster.dev/plan``
``MIG-5b…`` that the topology lists   ``MIG-5b…``
as a device of its own
====================================  ==========================================================

A pod that is not listed may have devices: nothing is known of it, and its plan counts. So pods may
be left out where there are too many: all annotations of an object together
may have 256 KiB (``TotalAnnotationSizeLimitB``, k8s.io/apimachinery pkg/api/validation),
``muster.dev/node-topology`` has a quarter of that, and this one stops at ``LIMIT_BYTES``: some 900
pods with one GPU each, or 240 with eight. ``left_out`` says how many are missing.
"""

from collections.abc import Iterable, Mapping
from typing import Annotated, Final

import msgspec

VERSION: Final = 1
LIMIT_BYTES: Final = 96 * 1024

_Name = Annotated[str, msgspec.Meta(min_length=1)]
_Count = Annotated[int, msgspec.Meta(ge=0)]
Devices = Mapping[str, Iterable[str]]
"""Names of devices by resource; a name once for each unit of it."""


class AllocationsError(ValueError):
    """The annotation cannot be read; the text says where and why."""


class NodeAllocations(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """The annotation's JSON."""

    #: Of the format.
    version: int
    #: Grows with each change that the writer saw.
    generation: _Count
    #: Pod UID → resource → names of devices, sorted.
    pods: dict[_Name, dict[_Name, tuple[_Name, ...]]]
    #: Number of pods for which there was no room.
    left_out: _Count = 0


class _Version(msgspec.Struct, frozen=True, gc=False):
    version: int


_VERSION: Final = msgspec.json.Decoder(_Version)
_DECODER: Final = msgspec.json.Decoder(NodeAllocations)
_ENCODER: Final = msgspec.json.Encoder()
_SEPARATORS: Final = len('"":,')


def encode(generation: int, pods: Iterable[tuple[str, Devices]]) -> str:
    """Return the annotation's text for pairs of pod UID and devices.

    The same pairs give the same text, in any order, as long as all of them have room in
    ``LIMIT_BYTES``. Otherwise the last ones are left out. Pods with other devices than their plan
    has should come first; the devices of the others are known from the plan.
    """
    written: dict[str, dict[str, tuple[str, ...]]] = {}
    left_out = 0
    room = LIMIT_BYTES - len(_text(generation, {}, LIMIT_BYTES))
    for uid, devices in pods:
        mine = _sorted(devices)
        room -= len(_ENCODER.encode(mine)) + len(uid) + _SEPARATORS if mine else 0
        if room < 0:
            left_out += 1
        elif mine:
            written[uid] = mine
    return _text(generation, {uid: written[uid] for uid in sorted(written)}, left_out).decode()


def decode(text: str) -> NodeAllocations:
    """Read the annotation. Raises ``AllocationsError`` for anything ``encode`` cannot have made."""
    try:
        version = _VERSION.decode(text).version
        if version != VERSION:
            raise AllocationsError(f"version is {version}; this release of Muster reads {VERSION}")
        return _DECODER.decode(text)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise AllocationsError(str(error)) from error


def _sorted(devices: Devices) -> dict[str, tuple[str, ...]]:
    found = {resource: tuple(sorted(devices[resource])) for resource in sorted(devices)}
    return {resource: names for resource, names in found.items() if names}


def _text(generation: int, pods: dict[str, dict[str, tuple[str, ...]]], left_out: int) -> bytes:
    return _ENCODER.encode(NodeAllocations(VERSION, generation, pods, left_out))
