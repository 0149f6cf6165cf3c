"""How others order domains and nodes, re-stated from the descriptions of their rules.

All place the kinds one after the other (Volcano and KAI pod by pod, Kueue a pod set at a
time), never go back, and are written here for the two things compared: is there a place,
and how many domains does it use? Slices are left to the planner: only Kueue has them, and
its rule is the same with slices for pods.

==============  ==========================================================================
``bestfit``     kube-scheduler with MostAllocated: pod by pod, the fullest node that has
                room; a required domain is the fullest one in which that works
``kueue``       BestFit of Kueue's topology-aware scheduling (KEP 2724): the level where one
                domain holds all, downwards the largest first and, once one holds the
                rest, the smallest that does
``leastfree``   the same with LeastFreeCapacity: the smallest domain that holds all, else
                the smallest first
``hypernode``   Volcano: tiers upwards; in the first tier with a HyperNode in which all
                fit, the HyperNode that would be the fullest
``kai``         KAI: levels upwards, in a level the tightest domain first, the first in which
                all fit
==============  ==========================================================================
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from loadtest.benches.topology.cases import Case

Placement = list[list[int]]
"""Pods per host and kind."""


@dataclass(slots=True)
class _Room:
    """What is free while pods are put down."""

    case: Case
    gpus: list[int]
    cpu: list[int]
    found: Placement

    @classmethod
    def of(cls, case: Case) -> "_Room":
        return cls(
            case,
            [host.free_gpus for host in case.hosts],
            [host.free_millicpu for host in case.hosts],
            [[0] * len(case.kinds) for _ in case.hosts],
        )

    def pods(self, host: int, kind: int) -> int:
        """Return how many more pods of a kind fit."""
        asked = self.case.kinds[kind]
        room = self.cpu[host] // asked.millicpu
        return min(room, self.gpus[host] // asked.gpus) if asked.gpus else room

    def put(self, host: int, kind: int, count: int) -> None:
        """Put pods down."""
        asked = self.case.kinds[kind]
        self.gpus[host] -= asked.gpus * count
        self.cpu[host] -= asked.millicpu * count
        self.found[host][kind] += count

    def free(self, hosts: Iterable[int]) -> tuple[int, int]:
        """Return what is free on some hosts."""
        chosen = list(hosts)
        return sum(self.gpus[h] for h in chosen), sum(self.cpu[h] for h in chosen)


def used(case: Case, placement: Placement) -> tuple[int, ...]:
    """Return the domains used, in ``Case.order``."""
    hosts = [h for h, pods in enumerate(placement) if any(pods)]
    domains = case.domains()
    return tuple(len({domains[level][h] for h in hosts}) for level in case.order())


def keeps_required(case: Case, placement: Placement) -> bool:
    """Return whether all kinds are in one required domain: Kueue's pod sets need not be."""
    if case.required is None:
        return True
    names = case.domains()[case.required]
    return len({names[h] for h, pods in enumerate(placement) if any(pods)}) == 1


def _regions(case: Case, level: int | None) -> Iterator[list[int]]:
    """Yield the hosts of every domain of a level, ``None``: of the cluster."""
    hosts = [h for h, host in enumerate(case.hosts) if case.eligible(host)]
    if level is None:
        yield hosts
        return
    names = case.domains()[level]
    for name in dict.fromkeys(names[h] for h in hosts):
        if not name.startswith("alone "):
            yield [h for h in hosts if names[h] == name]


def _levels_up(case: Case) -> list[int | None]:
    """Return the levels from the hosts up to the required one, or the cluster."""
    top = -1 if case.required is None else case.required
    return [None if level < 0 else level for level in range(len(case.levels) - 1, top - 1, -1)]


# --- pod by pod -------------------------------------------------------------------------


def _fullest_first(case: Case, region: Sequence[int]) -> _Room | None:
    """Place pod by pod on the node with the least free that has room."""
    room = _Room.of(case)
    for kind, asked in enumerate(case.kinds):
        for _ in range(asked.count):
            able = [h for h in region if room.pods(h, kind)]
            if not able:
                return None
            room.put(min(able, key=lambda h: (room.gpus[h], room.cpu[h], h)), kind, 1)
    return room


def bestfit(case: Case) -> Placement | None:
    """See the module's account."""
    start = _Room.of(case)
    for region in sorted(_regions(case, case.required), key=start.free):
        found = _fullest_first(case, region)
        if found is not None:
            return found.found
    return None


def hypernode(case: Case) -> Placement | None:
    """See the module's account."""
    for level in _levels_up(case):
        fitting = [
            (region, found)
            for region in _regions(case, level)
            if (found := _fullest_first(case, region)) is not None
        ]
        if fitting:
            return min(fitting, key=lambda pair: pair[1].free(pair[0]))[1].found
    return None


def kai(case: Case) -> Placement | None:
    """See the module's account."""
    start = _Room.of(case)
    for level in _levels_up(case):
        for region in sorted(_regions(case, level), key=start.free):
            found = _fullest_first(case, region)
            if found is not None:
                return found.found
    return None


# --- a pod set at a time ----------------------------------------------------------------


def kueue(case: Case) -> Placement | None:
    """See the module's account."""
    return _tas(case, _best_fit)


def leastfree(case: Case) -> Placement | None:
    """See the module's account."""
    return _tas(case, _least_free)


_Choice = Callable[[list[tuple[int, str]], int], list[tuple[str, int]]]


def _tas(case: Case, choice: _Choice) -> Placement | None:
    room = _Room.of(case)
    for kind in range(len(case.kinds)):
        if not _pod_set(case, room, kind, choice):
            return None
    return room.found


def _pod_set(case: Case, room: _Room, kind: int, choice: _Choice) -> bool:
    """Find the level, then go down: the children of the chosen are pooled at each level."""
    need = case.kinds[kind].count
    domains = case.domains()
    eligible = [h for h, host in enumerate(case.hosts) if case.eligible(host)]
    chosen: set[str] | None = None
    for level in _start_levels(case):
        sizes = _sizes(room, kind, domains[level], eligible)
        if any(size >= need for size, _ in sizes):
            chosen = {choice(sizes, need)[0][0]}
            break
        if level == 0 and case.required is None and sum(size for size, _ in sizes) >= need:
            chosen = {name for name, _ in choice(sizes, need)}
            break
    if chosen is None:
        return False
    for below in range(level + 1, len(case.levels)):
        inside = [h for h in eligible if domains[below - 1][h] in chosen]
        picked = choice(_sizes(room, kind, domains[below], inside), need)
        chosen = {name for name, _ in picked}
    amounts = dict(choice(_sizes(room, kind, domains[-1], _named(domains[-1], chosen)), need))
    for host in _named(domains[-1], set(amounts)):
        room.put(host, kind, amounts[domains[-1][host]])
    return True


def _start_levels(case: Case) -> list[int]:
    """Return ``required``: that level; ``preferred``: it and those above; else upwards."""
    if case.required is not None and case.preferred is None:
        return [case.required]
    start = len(case.levels) - 1 if case.preferred is None else case.preferred
    return list(range(start, (case.required or 0) - 1, -1))


def _named(names: Sequence[str], chosen: set[str]) -> list[int]:
    return [h for h, name in enumerate(names) if name in chosen]


def _sizes(
    room: _Room, kind: int, names: Sequence[str], hosts: Iterable[int]
) -> list[tuple[int, str]]:
    sizes: dict[str, int] = {}
    for host in hosts:
        sizes[names[host]] = sizes.get(names[host], 0) + room.pods(host, kind)
    return [(size, name) for name, size in sizes.items() if size]


def _best_fit(sizes: list[tuple[int, str]], need: int) -> list[tuple[str, int]]:
    taken = []
    left = sorted(sizes, key=lambda pair: (-pair[0], pair[1]))
    while need and left:
        holding = [pair for pair in left if pair[0] >= need]
        size, name = min(holding) if holding else left[0]
        taken.append((name, min(size, need)))
        left.remove((size, name))
        need -= min(size, need)
    return taken


def _least_free(sizes: list[tuple[int, str]], need: int) -> list[tuple[str, int]]:
    holding = [pair for pair in sizes if pair[0] >= need]
    if holding:
        return [(min(holding)[1], need)]
    taken = []
    for size, name in sorted(sizes):
        if need:
            taken.append((name, min(size, need)))
            need -= min(size, need)
    return taken


RULES: Final[dict[str, Callable[[Case], Placement | None]]] = {
    "bestfit": bestfit,
    "kueue": kueue,
    "leastfree": leastfree,
    "hypernode": hypernode,
    "kai": kai,
}
