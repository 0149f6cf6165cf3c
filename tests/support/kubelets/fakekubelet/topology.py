"""The topology manager: which NUMA nodes a container is to be on.

Follows topology_hints.go and topologymanager/policy*.go of kubelet 1.35, without
prefer-closest-numa-nodes and with the device manager as the only provider of hints.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, product
from typing import Literal

Policy = Literal["none", "best-effort", "restricted", "single-numa-node"]
Mask = frozenset[int]


@dataclass(frozen=True)
class Hint:
    """``mask``: None has no preference."""

    mask: Mask | None
    preferred: bool


def device_hints(
    nodes: Sequence[int],
    every: Mapping[str, Mask],
    available: Iterable[str],
    reusable: Iterable[str],
    request: int,
) -> list[Hint]:
    """Return the hints of one resource (generateDeviceTopologyHints).

    ``every``: all devices of the resource, sick ones too → their NUMA nodes.
    """
    found: list[Mask] = []
    narrowest = len(nodes)
    available, reusable = list(available), [d for d in reusable if every[d]]
    for mask in _masks(nodes):
        if sum(bool(numa & mask) for numa in every.values()) >= request:
            narrowest = min(narrowest, len(mask))
        if not all(every[device] & mask for device in reusable):
            continue
        if len(reusable) + sum(bool(every[d] & mask) for d in available) >= request:
            found.append(mask)
    return [Hint(mask, len(mask) == narrowest) for mask in found]


def merge(
    policy: Policy, nodes: Sequence[int], hints: Mapping[str, list[Hint] | None]
) -> tuple[Hint, bool]:
    """Return the container's affinity and whether it is admitted."""
    every = frozenset(nodes)
    if policy == "none":
        return Hint(None, preferred=True), True
    of_resources = [_filtered(each) for each in hints.values()] or [[Hint(None, preferred=True)]]
    if policy == "single-numa-node":
        of_resources = [
            [h for h in each if h.preferred and (h.mask is None or len(h.mask) == 1)]
            for each in of_resources
        ]
    best = _best(every, of_resources)
    if policy == "single-numa-node" and best.mask == every:
        best = Hint(None, best.preferred)
    return best, policy == "best-effort" or best.preferred


def _filtered(hints: list[Hint] | None) -> list[Hint]:
    if hints is None:
        return [Hint(None, preferred=True)]
    return hints or [Hint(None, preferred=False)]


def _best(every: Mask, of_resources: list[list[Hint]]) -> Hint:
    wanted = max((_narrowest(hints) for hints in of_resources), default=0)
    best: Hint | None = None
    for chosen in product(*of_resources):
        mask = every
        for hint in chosen:
            mask = mask & (every if hint.mask is None else hint.mask)
        if mask:
            best = _better(best, Hint(mask, all(h.preferred for h in chosen)), wanted)
    return best or Hint(every, preferred=False)


def _narrowest(hints: list[Hint]) -> int:
    return min((len(hint.mask) for hint in hints if hint.mask is not None), default=0)


def _better(current: Hint | None, candidate: Hint, wanted: int) -> Hint:
    """Return the better of two hints (HintMerger.compare)."""
    if current is None:
        return candidate
    if current.preferred != candidate.preferred:
        return candidate if candidate.preferred else current
    if current.preferred:
        return _narrower(current, candidate)
    return _better_not_preferred(current, candidate, wanted)


def _better_not_preferred(current: Hint, candidate: Hint, wanted: int) -> Hint:
    """Return the one with the mask nearer to the width that the narrowest hints must have."""
    now, then = len(current.mask or ()), len(candidate.mask or ())
    if now > wanted:
        return _narrower(current, candidate)
    if now == wanted:
        return current if then != wanted else _narrower(current, candidate)
    if then > wanted:
        return current
    if then == wanted or then > now:
        return candidate
    return current if then < now else _narrower(current, candidate)


def _narrower(current: Hint, candidate: Hint) -> Hint:
    """Return the narrower; of equally wide ones that with lower nodes."""

    def order(hint: Hint) -> tuple[int, int]:
        mask = hint.mask or frozenset()
        return len(mask), sum(1 << node for node in mask)

    return candidate if order(candidate) < order(current) else current


def _masks(nodes: Sequence[int]) -> Iterator[Mask]:
    for size in range(1, len(nodes) + 1):
        yield from (frozenset(each) for each in combinations(nodes, size))
