"""When the containers of a pod have the devices that they ask for. Pure.

::

    init 1 ─► sidecar ─► init 2 ─► containers            phases: init 1
              └───────── runs on ──────────►                     init 2 and the sidecar
                                                                 containers and the sidecar

Parts of devices are asked for phase by phase: the placement finds out which of them share a device
(``muster.cluster.devices.phases``). Pieces (whole devices, replicas, MIG instances) are counted as
kube-scheduler counts them: the largest sum of all phases, held all the time.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from muster.cluster.specs.deviceasks import (
    EVERY,
    DeviceAsk,
    Memory,
    MigAsk,
    Milli,
    SharedAsk,
    Whole,
)

_RUNNING: Final = 1  # the phase of the containers


class TimedAsk(NamedTuple):
    """An ask, and the bits of the phases in which its container runs."""

    ask: DeviceAsk
    phases: int = _RUNNING


class _InitContainer(NamedTuple):
    """``sidecar``: it keeps running."""

    sidecar: bool
    asks: list[DeviceAsk]


def timed(
    running: Sequence[DeviceAsk], first: Iterable[tuple[bool, list[DeviceAsk]]]
) -> list[TimedAsk]:
    """Return what a pod asks for, and when.

    ``running``: the asks of its containers. ``first``: of its init containers, in their order, with
    whether each is a sidecar. Asks for which the devices of another container are enough are left
    out.
    """
    inits = [_InitContainer(*each) for each in first]
    kept = [ask for each in inits if each.sidecar for ask in each.asks]
    pieces = _beyond([*running, *kept], inits)
    needed = {number: _needed(number, inits, running) for number in _numbers(inits)}
    bits = {number: 1 << place for place, number in enumerate((n for n in needed if needed[n]), 1)}
    found = [TimedAsk(ask) for ask in running]
    for number, each in enumerate(inits):
        if each.sidecar:
            later = sum(bit for init, bit in bits.items() if init > number)
            found += [TimedAsk(ask, _RUNNING | later) for ask in each.asks]
    for number, bit in bits.items():
        found += [TimedAsk(ask, bit) for ask in needed[number]]
    if bits:
        found = [each if _is_part(each.ask) else TimedAsk(each.ask, EVERY) for each in found]
    return [*found, *(TimedAsk(ask, EVERY if bits else _RUNNING) for ask in pieces)]


def _numbers(inits: Sequence[_InitContainer]) -> Iterator[int]:
    return (number for number, each in enumerate(inits) if not each.sidecar)


# --- parts ------------------------------------------------------------------------------


def _needed(
    number: int, inits: Sequence[_InitContainer], running: Sequence[DeviceAsk]
) -> list[DeviceAsk]:
    """Return the parts that an init container asks for and that others do not cover.

    The containers run beside all sidecars, and so does a later init container beside those before
    it: where theirs is enough, so it is for this one, whatever sidecars there are.
    """
    later = [ask for each in inits[number + 1 :] if not each.sidecar for ask in each.asks]
    others = (*running, *later, *_with_the_same_sidecars(number, inits))
    return [
        ask
        for ask in inits[number].asks
        if _is_part(ask) and not any(covers(other, ask) for other in others)
    ]


def _with_the_same_sidecars(number: int, inits: Sequence[_InitContainer]) -> list[DeviceAsk]:
    """Return the asks of the init containers before one since the last sidecar that asks.

    Equal ones are left to the first: a later one covers an earlier one only where it asks for more.
    """
    found: list[DeviceAsk] = []
    for each in reversed(inits[:number]):
        if each.sidecar and each.asks:
            break
        found += each.asks if not each.sidecar else []
    return [ask for ask in found if ask not in inits[number].asks]


def _is_part(ask: DeviceAsk) -> bool:
    return isinstance(ask, Milli | Memory)


def covers(one: DeviceAsk, other: DeviceAsk) -> bool:
    """Return whether the devices of one ask would do for the other as well."""
    match one, other:
        case Milli(), Milli():
            enough = one.milli >= other.milli
        case Memory(), Memory():
            same = (one.mib > 0) is (other.mib > 0)
            memory = one.mib >= other.mib and one.percent >= other.percent
            enough = same and memory and one.cores >= other.cores
        case _:
            return False
    return enough and one.family == other.family and one.count >= other.count


# --- pieces -----------------------------------------------------------------------------


def _beyond(running: Iterable[DeviceAsk], inits: Sequence[_InitContainer]) -> list[DeviceAsk]:
    """Return the pieces that some init container asks for beyond those of the containers."""
    held = _counted(running)
    most, sidecars = Counter(held), Counter[DeviceAsk]()
    for each in inits:
        mine = _counted(each.asks)
        if each.sidecar:
            sidecars += mine
        else:
            most |= sidecars + mine
    return [_pieces(kind, count) for kind, count in (most - held).items()]


def _counted(asks: Iterable[DeviceAsk]) -> Counter[DeviceAsk]:
    """Return how many pieces of each kind are asked for; a kind is an ask for one."""
    found = Counter[DeviceAsk]()
    for ask in asks:
        if not _is_part(ask):
            found[_pieces(ask, 1)] += ask.count
    return found


def _pieces(ask: DeviceAsk, count: int) -> DeviceAsk:
    match ask:
        case SharedAsk():
            return replace(ask, replicas=count)
        case Whole() | MigAsk():
            return replace(ask, count=count)
        case _:
            return ask
