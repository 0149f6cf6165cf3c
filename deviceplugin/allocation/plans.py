"""What a plan means for each resource of a node: names, each with a number of ids.

The extender writes one list of names for a pod: first the whole devices, resource by resource
in the order of their names, then one entry after the other for the containers that ask for
shares, running ones before plain init containers (``muster.cluster.devices.needs``,
``muster.workloads.devices.deviceasks``), each in the node's order. The list does not assign names
to containers: a name belongs to the resource that offers it, and within a pod any split is right.

::

    names that the resource offers ──► as many ids as names     whole, replica, MIG
                                   └─► all that is asked for,   units, in equal parts: the ask
                                       over the names           names each device once

An init container's ask that no other container covers is planned beside theirs, so a plan may
name more than the containers hold at any time, up to the sum of all asks.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from deviceplugin.allocation.values import DeviationKind, IdKind, IdStock, NodePod


@dataclass(frozen=True, slots=True)
class Meaning:
    """A plan, resource by resource."""

    #: resource → names with numbers of ids
    wanted: Mapping[str, Counter[str]] = field(default_factory=dict)
    #: (resource, why, detail)
    problems: tuple[tuple[str, DeviationKind, str], ...] = ()


def needed(pod: NodePod, resource: str) -> int:
    """Return how many different ids the pod has in the end, as the kubelet gives them.

    Later containers get what plain init containers had before they get new ids.
    """
    held = spare = 0
    for ask, amount in pod.asks(resource):
        reused = min(spare, amount)
        held += amount - reused
        spare = spare - reused + (amount if ask.passes_on else 0)
    return held


def meaning(pod: NodePod, stocks: Mapping[str, IdStock]) -> Meaning:
    """Return what a pod's plan means for this node's resources."""
    if pod.problem:
        return Meaning(problems=(("", DeviationKind.UNREADABLE, pod.problem),))
    if pod.plan is None:
        return Meaning()
    wanted: dict[str, Counter[str]] = {}
    problems: list[tuple[str, DeviationKind, str]] = []
    known: set[str] = set()
    for resource, stock in stocks.items():
        if not pod.asks(resource):
            continue
        offered = {offer.name for offer in stock.offers}
        names = [name for name in pod.plan if name in offered]
        known.update(names)
        found = _counted(pod, stock, names)
        if found is not None:
            wanted[resource] = found
        elif names:
            detail = f"{len(names)} named, {needed(pod, resource)} needed"
            problems.append((resource, DeviationKind.WRONG_NUMBER, detail))
        else:
            problems.append((resource, DeviationKind.NOT_OURS, "none of it named"))
    strange = [name for name in pod.plan if name not in known]
    lacking = [p for p in problems if p[1] is DeviationKind.NOT_OURS]
    if strange and not lacking and wanted:
        return Meaning(wanted, tuple(problems))  # of resources that others serve
    if not strange:
        problems = [p for p in problems if p not in lacking]  # counted only, none was chosen
    return Meaning(wanted, tuple((r, w, ", ".join(strange) or d) for r, w, d in problems))


def _counted(pod: NodePod, stock: IdStock, names: list[str]) -> Counter[str] | None:
    """Return ids per name; ``None`` where the names are none, too few or too many."""
    least = needed(pod, stock.resource)
    if not names:
        return None
    if stock.kind is IdKind.UNIT:
        return _shared_out(pod, stock.resource, names, least)
    most = sum(amount for _, amount in pod.asks(stock.resource))
    return Counter(names) if least <= len(names) <= most else None


def _shared_out(pod: NodePod, resource: str, names: list[str], least: int) -> Counter[str] | None:
    """Return units per name: each running container has as many names as the others."""
    running = [amount for ask, amount in pod.asks(resource) if not ask.passes_on]
    if running and len(names) % len(running) == 0 and sum(running) == least:
        each = len(names) // len(running)
        shares = [(running[place // each], each, name) for place, name in enumerate(names)]
        if all(amount % many == 0 for amount, many, _ in shares):
            found = Counter[str]()
            for amount, many, name in shares:
                found[name] += amount // many
            return found
    each, rest = divmod(least, len(names))
    found = Counter[str]()
    for place, name in enumerate(names):
        found[name] += each + (place < rest)
    return found if each else None
