"""Lost members beside every way to seat them: small clusters, random gangs, plain Python.

A *case* is a cluster, a gang whose members stand somewhere valid, and some of these lost. Nothing
here knows how the planner works: the rules of a gang are checked seat by seat.
"""

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations

from support.clusters.scene import BLOCK, HOST, RACK, pod_class, roles
from support.clusters.standby import Standby

from muster.cluster.ids import GangKey
from muster.placement.decision import Decision, Plan, Wait, WaitReason

LEVELS = (BLOCK, RACK, HOST)
_MOST_SEATINGS = 20_000

Seats = dict[int, int]  # rank -> host
Cost = tuple[int, ...]


@dataclass(frozen=True)
class Host:
    block: int
    rack: int
    gpus: int
    busy: int = 0

    def domain(self, level: str, number: int) -> tuple[int, ...]:
        path = (self.block, self.rack, number)
        return path[: LEVELS.index(level) + 1]


@dataclass(frozen=True)
class Case:
    """``asks``: GPUs by rank; ``seats``: who stays; ``back``: the lost ones that are made anew."""

    hosts: tuple[Host, ...]
    asks: tuple[int, ...]
    leaders: int
    required: str | None
    preferred: str | None
    slices: tuple[tuple[str, int], ...]
    roles: tuple[str, ...]
    minimum: int
    seats: Seats
    back: tuple[int, ...]
    cordoned: frozenset[int] = field(default_factory=frozenset)
    #: Members of Jobs that count from 0 each; 0: the ranks are the members' numbers.
    job: int = 0

    def number(self, rank: int) -> int:
        """Return the number that a member has of its own."""
        return rank % self.job if self.job else rank

    def is_in_doubt(self) -> bool:
        """Return whether numbers come twice: then members may be in any slice in one domain."""
        numbers = [self.number(rank) for rank in (*self.seats, *self.back)]
        return len(set(numbers)) < len(numbers)

    def role(self, rank: int) -> str:
        return "l" if rank < self.leaders else "w"

    def slice_of(self, rank: int, size: int) -> int | None:
        """Return the number of a member's slice, ``None`` for one in no slice."""
        if not self.roles:
            return rank // size
        return None if rank < self.leaders else (rank - self.leaders) // size


def random_case(seed: int) -> Case:
    """Return a case; the same seed gives the same."""
    rng = random.Random(seed)
    while True:
        case = _drawn(rng)
        if case is not None:
            return case


def counted_twice(case: Case, seed: int) -> Case:
    """Return the case with its members in Jobs that count from 0 each."""
    rng = random.Random(seed)
    return replace(case, job=rng.randint(1, max(len(case.asks) // 2, 1)))


def elastic(case: Case, seed: int) -> Case:
    """Return the case with a smaller minimum, so that some or all of the lost are above it."""
    rng = random.Random(seed)
    least = max([case.leaders + 1, *(size + case.leaders for _, size in case.slices)])
    return replace(case, minimum=rng.randint(min(least, len(case.asks)), len(case.asks)))


def _drawn(rng: random.Random) -> Case | None:
    hosts = tuple(
        Host(block, rack, gpus, rng.choice([0, 0, 0, gpus // 2, gpus]))
        for block in range(rng.randint(1, 2))
        for rack in range(rng.randint(1, 3))
        for _ in range(rng.randint(1, 3))
        for gpus in [rng.choice([8, 8, 8, 4, 2])]
    )
    leaders = rng.choice([0, 0, 1, 1, 2])
    workers = rng.randint(2, 6)
    lead, work = rng.choice([8, 4, 2, 1]), rng.choice([8, 8, 4, 2])
    size = rng.choice([2, 2, 3])
    sliced = rng.choice([(), ((RACK, size),), ((RACK, size),), ((BLOCK, size),), ((HOST, size),)])
    if sliced and sliced[0][0] == RACK and rng.random() < 0.2:
        sliced = ((BLOCK, 2 * size), *sliced)
    roles = ("w",) if sliced and leaders and rng.random() < 0.6 else ()
    asks = (lead,) * leaders + (work,) * workers
    whole = Case(
        hosts,
        asks,
        leaders,
        rng.choice([None, None, BLOCK, RACK]),
        rng.choice([None, None, None, RACK]),
        sliced,
        roles,
        len(asks),
        {},
        (),
    )
    if whole.required == RACK:
        whole = replace(whole, preferred=None)
    if _contradictory(whole):
        return None
    seats = _seated(rng, whole)
    if seats is None:
        return None
    lost = rng.sample(range(len(asks)), rng.randint(1, min(4, len(asks) - 1)))
    back = lost if rng.random() < 0.8 else rng.sample(lost, rng.randint(1, len(lost)))
    stay = {rank: host for rank, host in seats.items() if rank not in lost}
    crowd = [
        replace(h, busy=h.busy + rng.randint(0, max(h.gpus - h.busy - _used(whole, stay, n), 0)))
        if rng.random() < 0.4
        else h
        for n, h in enumerate(hosts)
    ]
    freed = [replace(h, busy=0) if rng.random() < 0.3 else h for h in crowd]
    cordoned = frozenset(n for n in range(len(hosts)) if rng.random() < 0.1)
    return replace(
        whole, hosts=tuple(freed), seats=stay, back=tuple(sorted(back)), cordoned=cordoned
    )


def _contradictory(case: Case) -> bool:
    """Return whether a gang is refused as written: large slices, or slices wider than required."""
    sliced = len(case.asks) - (case.leaders if case.roles else 0)
    wide = case.required is not None and any(
        LEVELS.index(level) < LEVELS.index(case.required) for level, _ in case.slices
    )
    return wide or any(size > sliced for _, size in case.slices)


def _used(case: Case, seats: Seats, host: int) -> int:
    return sum(case.asks[rank] for rank, at in seats.items() if at == host)


def _seated(rng: random.Random, case: Case) -> Seats | None:
    """Seat all members at random, member by member; ``None``: it led nowhere."""
    for _ in range(4):
        seats: Seats = {}
        for rank in range(len(case.asks)):
            options = list(choices(case, seats, rank))
            if not options:
                break
            near = [h for h in options if h in seats.values()]
            seats[rank] = rng.choice(near if near and rng.random() < 0.5 else options)
        if len(seats) == len(case.asks):
            return seats
    return None


def choices(case: Case, seats: Seats, rank: int) -> Iterator[int]:
    """Yield the hosts that take one more member beside those that are seated."""
    for number, host in enumerate(case.hosts):
        if number in case.cordoned:
            continue
        if _used(case, seats, number) + case.asks[rank] > host.gpus - host.busy:
            continue
        bound = _bound(case, seats, rank)
        if all(_together(case, level, number, seats[other]) for level, other in bound):
            yield number


def _bound(case: Case, seats: Seats, rank: int) -> Iterator[tuple[str, int]]:
    """Yield (level, other rank): whom a member must share a domain of the level with."""
    for other in seats:
        if case.required is not None:
            yield case.required, other
        for level, size in () if case.is_in_doubt() else case.slices:
            mine = case.slice_of(rank, size)
            if mine is not None and mine == case.slice_of(other, size):
                yield level, other


def _together(case: Case, level: str, one: int, other: int) -> bool:
    return case.hosts[one].domain(level, one) == case.hosts[other].domain(level, other)


def seatings(case: Case) -> Iterator[Seats]:
    """Yield every way to seat those who came back beside those who stayed."""

    def seat(at: int, seats: Seats) -> Iterator[Seats]:
        if at == len(case.back):
            if not scattered(case, seats):
                yield seats
            return
        for host in choices(case, seats, case.back[at]):
            yield from seat(at + 1, {**seats, case.back[at]: host})

    yield from seat(0, dict(case.seats))


def scattered(case: Case, seats: Seats) -> bool:
    """Return whether members that may be in any slice begin more slices than the gang has."""
    if not case.is_in_doubt():
        return False
    first = case.leaders if case.roles else 0
    return any(
        _begun(case, level, size, first, seats)
        > max(_begun(case, level, size, first, case.seats), -(-(len(case.asks) - first) // size))
        for level, size in case.slices
    )


def _begun(case: Case, level: str, size: int, first: int, seats: Seats) -> int:
    """Return how many slices the members from rank ``first`` on are in at least."""
    there = Counter(case.hosts[h].domain(level, h) for rank, h in seats.items() if rank >= first)
    return sum(-(-count // size) for count in there.values())


def cost(case: Case, seats: Seats) -> Cost:
    """Return the domains that hold no member yet, the preferred level first, then widest first."""
    order = dict.fromkeys([*filter(None, (case.required, case.preferred)), *LEVELS])
    return tuple(
        len(_domains(case, level, seats) - _domains(case, level, case.seats)) for level in order
    )


def _domains(case: Case, level: str, seats: Seats) -> set[tuple[int, ...]]:
    return {case.hosts[h].domain(level, h) for h in seats.values()}


def cheapest(case: Case) -> Cost | None:
    """Return the least cost of any seating; ``None``: there is none."""
    return min((cost(case, seats) for seats in seatings(case)), default=None)


def is_small(case: Case) -> bool:
    """Return whether all seatings can be looked at."""
    ways = 1
    for rank in case.back:
        ways *= max(len(list(choices(case, case.seats, rank))), 1)
    return ways <= _MOST_SEATINGS


def some(case: Case) -> tuple[int, ...] | None:
    """Return members that could make up the minimum, whole slices of them; ``None``: none could."""
    need = case.minimum - len(case.seats)
    for count in range(len(case.back), max(need, 1) - 1, -1):
        for ranks in combinations(case.back, count):
            if _are_whole(case, ranks) and next(seatings(replace(case, back=ranks)), None):
                return ranks
    return None


def _are_whole(case: Case, ranks: Sequence[int]) -> bool:
    """Return whether of every slice all or none of those who came back are among some."""
    if not case.slices:
        return True
    size = case.slices[0][1]
    out = {case.slice_of(rank, size) for rank in case.back if rank not in ranks} - {None}
    return not any(case.slice_of(rank, size) in out for rank in ranks)


# --- the planner's answer ---------------------------------------------------------------


def built(case: Case) -> tuple[Standby, GangKey]:
    """Return the cluster with the gang in it, those who came back waiting."""
    scene = Standby("")
    for number, host in enumerate(case.hosts):
        scene.node(
            f"n{number}:{host.gpus}",
            block=f"b{host.block}",
            rack=f"r{host.rack}",
            unschedulable=number in case.cordoned,
        )
        if host.busy:
            scene.run(f"n{number}", gpu=host.busy)
    spec: dict[str, object] = {"min_count": case.minimum, "size": len(case.asks)}
    if case.slices:
        (*wider, (level, size)) = case.slices
        spec |= {"slice_size": size, "slice_level": level, "slice_roles": case.roles}
        spec["wider_slices"] = tuple(wider)
    if case.roles:  # as workload readers have it; it tells what a lost member was
        spec["roles"] = roles(l=case.leaders, w=case.minimum - case.leaders)
    levels = {"required_level": case.required, "preferred_level": case.preferred}
    key = scene.gang("g", len(case.asks), members=0, **levels, **spec)  # type: ignore[arg-type]
    for rank in sorted([*case.seats, *case.back]):
        (uid,) = scene.members(key, [rank], pod_class(case.asks[rank]), role=case.role(rank))
        pod = replace(scene._pods[uid], rank=case.number(rank))
        if rank in case.seats:
            pod = replace(pod, node=f"n{case.seats[rank]}", gates=frozenset())
        scene._apply(pod)
    return scene, key


def chosen(scene: Standby, case: Case, plan: Plan) -> Seats:
    """Return who stands where when a plan is bound."""
    names = [scene.snapshot.pods.names[row] for row in plan.pods.tolist()]
    ranks = [int(name.rpartition("-")[2][1:]) for name in names]  # as in `ns/g-w3`
    hosts = [int(name[1:]) for name in scene.nodes_of(plan)]
    return {**case.seats, **dict(zip(ranks, hosts, strict=True))}


def broken(case: Case, seats: Seats) -> list[str]:
    """Return which rules a seating breaks."""
    found = []
    for number, host in enumerate(case.hosts):
        new = any(h == number and rank in case.back for rank, h in seats.items())
        if new and _used(case, seats, number) > host.gpus - host.busy:
            found.append(f"n{number} is overfull")
        if new and number in case.cordoned:
            found.append(f"n{number} is cordoned")
    for rank in case.back:
        for level, other in _bound(case, {r: h for r, h in seats.items() if r != rank}, rank):
            if rank in seats and not _together(case, level, seats[rank], seats[other]):
                found.append(f"members {rank} and {other} are in two domains of {level}")
    if scattered(case, seats):
        found.append("more slices are begun than the gang has")
    return found


def faults(case: Case, found: Decision, scene: Standby) -> list[str]:
    """Return what is wrong with an answer, in sentences."""
    best = cheapest(case)
    if isinstance(found, Plan):
        seats = chosen(scene, case, found)
        wrong = broken(case, seats)
        if best is not None and len(seats) < len(case.seats) + len(case.back):
            wrong.append(f"{len(found.pods)} of {len(case.back)} are placed")
        elif not wrong and best is not None and cost(case, seats) != best:
            wrong.append(f"new domains {cost(case, seats)}, as few as {best} would do")
        return wrong
    if not isinstance(found, Wait):
        return [f"rejected: {found.message}"]
    if found.reason in (WaitReason.UNSOUND_PLAN, WaitReason.PLANNER_FAILED):
        return [f"{found.reason}: {found.explanation.cause or found.explanation.remedy}"]
    if found.explanation.error or "Error" in found.explanation.remedy:
        return [found.explanation.error or found.explanation.remedy]
    if best is not None:
        return [f"waits ({found.reason}), fits with new domains {best}"]
    is_plain = not case.roles and not case.is_in_doubt()  # roles have minima of their own
    enough = some(case) if is_plain else None
    return [] if enough is None else [f"waits ({found.reason}), members {enough} would be enough"]
