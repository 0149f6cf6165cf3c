"""The load as a plan: which gang of which size comes when. Decided before anything starts.

A size of the file is scaled by ``nodes / spec.nodes``. Gang sizes stay as they are while an
arrival has at least ``FEWEST_GANGS`` of the largest; on small clusters they shrink with the rest,
so that a phase is still about several gangs. The last gang takes what is left. On a fleet of
several pools (pools.py) each pool gets its share of the pods, and gangs of all pools come mixed.

Everything random is drawn from the seed, one generator for each phase, so that a change to
one phase leaves the others as they were.
"""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from loadtest.fourphase.load.pools import WHOLE_HOST, Ask, Pool, divided
from loadtest.fourphase.load.replayreport import Replayed
from loadtest.fourphase.load.spec import Arrival, Phase, Spec, SpecError

FEWEST_GANGS: Final = 8
FEWEST_NODES: Final = 20  # below that a phase is one gang and a share of nodes is none


@dataclass(frozen=True, slots=True)
class GangPlan:
    """One gang: ``at`` seconds after its phase began, ``runs`` seconds from whole to done."""

    index: int
    name: str
    phase: int
    class_: str
    priority: int
    size: int
    at: float
    per_second: float
    runs: float | None
    ask: Ask = WHOLE_HOST

    @property
    def takes(self) -> int:
        """Room of its pool that it takes: hosts in the phases, GPUs in a trace."""
        return self.size * self.ask.room


@dataclass(frozen=True, slots=True)
class PhasePlan:
    """One phase with its sizes."""

    index: int
    spec: Phase
    gangs: tuple[GangPlan, ...]
    #: Number of nodes.
    drain: int
    #: Number of nodes.
    fail: int

    @property
    def pods(self) -> int:
        """Pods that arrive."""
        return sum(gang.size for gang in self.gangs)


@dataclass(frozen=True, slots=True)
class LoadPlan:
    """The whole load."""

    nodes: int
    seed: int
    #: Pods here for each pod of the file.
    scale: float
    spec: Spec
    phases: tuple[PhasePlan, ...]
    #: The pools of the fleet.
    pools: tuple[Pool, ...] = ()
    #: The trace that is replayed instead of phases.
    replayed: Replayed | None = None

    @property
    def rooms(self) -> dict[str, int]:
        """Room by pool; without pools each node is one unit."""
        return {pool.name: pool.room for pool in self.pools} or {"": self.nodes}

    @property
    def gangs(self) -> tuple[GangPlan, ...]:
        """All gangs, in order of their index."""
        return tuple(gang for phase in self.phases for gang in phase.gangs)

    def of(self, spec: Spec) -> "LoadPlan":
        """Return the same load under another description of its phases, as one with faults."""
        phases = tuple(
            replace(phase, spec=described)
            for phase, described in zip(self.phases, spec.phases, strict=True)
        )
        return replace(self, spec=spec, phases=phases)


def plan(spec: Spec, nodes: int, *, seed: int = 0, pools: Sequence[Pool] = ()) -> LoadPlan:
    """Decide the load for a cluster of ``nodes``; raises ``SpecError`` when it is too small.

    ``pools``: of a fleet with different hosts. Then only hosts in pools count, which have GPUs.
    """
    nodes = sum(pool.room for pool in pools) or nodes
    if nodes < FEWEST_NODES:
        raise SpecError(
            f"--nodes {nodes}: too few to tell phases apart: give at least {FEWEST_NODES}"
        )
    scale = nodes / spec.nodes
    phases: list[PhasePlan] = []
    first = 0
    for index, phase in enumerate(spec.phases):
        chance = random.Random(f"{seed}/{phase.name}")
        gangs: list[GangPlan] = []
        for arrival in phase.arrivals:
            name = f"{phase.name}-{arrival.class_}"
            sizes = _by_pool(arrival, scaled(arrival.pods, scale), pools, chance)
            gangs += _gangs(name, sizes, arrival, spec, phase=index, first=first + len(gangs))
        first += len(gangs)
        drain, fail = scaled_share(phase.drain, nodes), scaled_share(phase.fail, nodes)
        phases.append(PhasePlan(index, phase, tuple(gangs), drain, fail))
    return LoadPlan(nodes, seed, scale, spec, tuple(phases), tuple(pools))


def scaled(pods: int, scale: float) -> int:
    """Return a number of pods at this scale, at least one."""
    return max(1, round(pods * scale))


def scaled_share(share: float, nodes: int) -> int:
    """Return a share of the nodes; what is asked for at all is at least one node."""
    return max(1, round(share * nodes)) if share else 0


def _by_pool(
    arrival: Arrival, pods: int, pools: Sequence[Pool], chance: random.Random
) -> list[tuple[int, Ask]]:
    """Draw gangs of each pool's share of the pods; those of several pools come shuffled."""
    if not pools:
        return [(size, WHOLE_HOST) for size in gang_sizes(arrival, pods, chance)]
    shares = divided(pods, [pool.room for pool in pools])
    drawn = [
        (size, pool.ask)
        for pool, share in zip(pools, shares, strict=True)
        for size in gang_sizes(arrival, share, chance)
    ]
    if len(pools) > 1:
        chance.shuffle(drawn)
    return drawn


def gang_sizes(arrival: Arrival, pods: int, chance: random.Random) -> list[int]:
    """Draw sizes until ``pods`` are spent."""
    by_weight = shrunk(arrival.gangs, pods)
    sizes, weights = list(by_weight), list(by_weight.values())
    drawn: list[int] = []
    while pods:
        size = min(chance.choices(sizes, weights)[0], pods)
        drawn.append(size)
        pods -= size
    return drawn


def shrunk(gangs: Mapping[int, int], pods: int) -> dict[int, int]:
    """Return size → weight, sizes cut in proportion where the largest is too large for ``pods``."""
    room = max(1, pods // FEWEST_GANGS)
    factor = min(1.0, room / max(gangs))
    cut: dict[int, int] = {}
    for size, weight in gangs.items():
        smaller = max(min(2, size), round(size * factor))
        cut[smaller] = cut.get(smaller, 0) + weight
    return cut


def _gangs(
    name: str,
    sizes: list[tuple[int, Ask]],
    arrival: Arrival,
    spec: Spec,
    *,
    phase: int,
    first: int,
) -> list[GangPlan]:
    """Set gangs one behind the other at the arrival's rate."""
    made: list[GangPlan] = []
    at = 0.0
    for number, (size, ask) in enumerate(sizes):
        made.append(
            GangPlan(
                index=first + number,
                name=f"{name}-{number:04d}",
                phase=phase,
                class_=arrival.class_,
                priority=spec.classes[arrival.class_].priority,
                size=size,
                at=at,
                per_second=arrival.per_second,
                runs=arrival.runs,
                ask=ask,
            )
        )
        at += size / arrival.per_second if arrival.per_second else 0.0
    return made
