"""The flavors that a claim takes, and whether its queue has them now.

Each part takes all resources of a group from one flavor. Flavors are tried as they are listed: the
first that fits is taken, borrowed or not (``whenCanBorrow: MayStopSearch``), before any that fits
only after evictions (``whenCanPreempt: TryNextFlavor``). Source: Kueue,
pkg/scheduler/flavorassigner.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from muster.cluster.claims import ClaimPart, Grant, PartGrant, QuotaClaim
from muster.cluster.quota.availability import lack, potential
from muster.cluster.quota.cells import Cell
from muster.cluster.quota.charges import PODS
from muster.cluster.quota.flavors import Flavor, Groups, ResourceGroup
from muster.cluster.quota.preemptionpolicy import ReclaimWithin
from muster.cluster.quota.queuenode import QueueNode
from muster.cluster.specs.matching import tolerates
from muster.cluster.specs.podconstraints import Taint, TaintEffect

Taints = Callable[[str], tuple[Taint, ...]]
"""Returns the taints of the nodes of a flavor."""


class Fit(IntEnum):
    """How a claim fits its queue, best first."""

    #: Now.
    NOW = 0
    #: Once others have ended, or are evicted.
    LATER = 1
    #: Not before quotas are changed.
    NEVER = 2


@dataclass(frozen=True, slots=True)
class FlavorChoice:
    """What a claim would hold."""

    fit: Fit
    grant: Grant
    #: Its cells with what it takes of each.
    cells: Mapping[Cell, int]
    #: Whether others may be evicted for it, as far as its queue's quota is concerned.
    may_evict: bool = False
    #: Why it does not fit now, in words.
    message: str = ""


@dataclass(frozen=True, slots=True)
class _Option:
    """One flavor for one part and one group."""

    fit: Fit
    flavor: str
    amounts: Mapping[str, int]
    may_evict: bool


_NEVER: Final = "can never have so much of"
_LATER: Final = "has too little left of"


def choose(
    node: QueueNode, groups: Groups, claim: QuotaClaim, taints: Taints, *, is_fair: bool = False
) -> FlavorChoice:
    """Return the flavors that a claim takes; with NEVER or LATER those that come closest.

    ``is_fair``: a claim that borrows may evict others, too, by the shares of their queues, if its
    queue takes anything from others (``canPreemptWhileBorrowing``).
    """
    used: dict[Cell, int] = {}
    parts: list[PartGrant] = []
    fit, may_evict, message = Fit.NOW, True, ""
    for part in claim.parts:
        wanted = _wanted(part, groups)
        uncovered = sorted(set(wanted) - {name for group in groups for name in group.resources})
        if uncovered:
            message = f"queue {node.spec.name} has no quota for {', '.join(uncovered)}"
            return FlavorChoice(Fit.NEVER, Grant(node.spec.name, ()), {}, message=message)
        flavors: dict[str, str] = {}
        for group in groups:
            asked = {name: wanted[name] for name in group.resources if name in wanted}
            if not asked:
                continue
            best = min(_options(node, group, part, asked, used, taints), key=_fit_of)
            if best.fit > fit:
                fit, message = best.fit, _message(node, best)
            may_evict &= best.may_evict or best.fit is Fit.NOW
            for name, amount in asked.items():
                flavors[name] = best.flavor
                cell = Cell(best.flavor, name)
                used[cell] = used.get(cell, 0) + amount
        parts.append(PartGrant(part.name, part.count, flavors, wanted))
    may_evict |= is_fair and node.spec.preemption.reclaim is not ReclaimWithin.NEVER
    grant = Grant(node.spec.name, tuple(parts))
    may_evict &= fit is Fit.LATER
    return FlavorChoice(fit, grant, used, may_evict, message)


def _wanted(part: ClaimPart, groups: Groups) -> dict[str, int]:
    """Return what a part takes, by resource; pods count only where a group has a quota of them."""
    counts_pods = any(PODS in group.resources for group in groups)
    return {
        name: amount * part.count
        for name, amount in part.requests
        if amount and part.count and (name != PODS or counts_pods)
    }


def _options(
    node: QueueNode,
    group: ResourceGroup,
    part: ClaimPart,
    asked: Mapping[str, int],
    used: Mapping[Cell, int],
    taints: Taints,
) -> Iterator[_Option]:
    """Yield the flavors of a group up to the first that fits now; one that nobody may have last."""
    keys = {key for flavor in group.flavors for key, _ in flavor.labels}
    for flavor in group.flavors:
        if not _suits(flavor, keys, part, taints(flavor.name)):
            continue
        cells = {
            Cell(flavor.name, name): amount + used.get(Cell(flavor.name, name), 0)
            for name, amount in asked.items()
        }
        option = _option(node, flavor.name, asked, cells)
        yield option
        if option.fit is Fit.NOW:
            return
    yield _Option(Fit.NEVER, "", asked, may_evict=False)


def _option(
    node: QueueNode,
    flavor: str,
    asked: Mapping[str, int],
    cells: Mapping[Cell, int],
) -> _Option:
    if lack(node, cells) is None:
        return _Option(Fit.NOW, flavor, asked, may_evict=False)
    if any(amount > potential(node, cell) for cell, amount in cells.items()):
        return _Option(Fit.NEVER, flavor, asked, may_evict=False)
    is_entitled = all(amount <= node.entitled(cell) for cell, amount in cells.items())
    may_evict = is_entitled or node.spec.preemption.borrows
    return _Option(Fit.LATER, flavor, asked, may_evict=may_evict)


def _suits(flavor: Flavor, keys: set[str], part: ClaimPart, taints: tuple[Taint, ...]) -> bool:
    """Return whether pods may have the nodes of a flavor, as far as the flavor says.

    Only the keys that flavors of the group have are compared, and only the pods' node selector:
    node affinity is not looked at.
    """
    labels = dict(flavor.labels)
    if any(key in keys and labels.get(key) != value for key, value in part.selector):
        return False
    return all(
        taint.effect is TaintEffect.PREFER_NO_SCHEDULE
        or any(tolerates(toleration, taint) for toleration in part.tolerations)
        for taint in taints
    )


def _fit_of(option: _Option) -> Fit:
    return option.fit


def _message(node: QueueNode, option: _Option) -> str:
    if not option.flavor:
        return f"no flavor of queue {node.spec.name} suits the pods"
    what = ", ".join(sorted(option.amounts))
    verb = _NEVER if option.fit is Fit.NEVER else _LATER
    return f"queue {node.spec.name} {verb} {what} in flavor {option.flavor}"
