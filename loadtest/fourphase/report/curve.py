"""Muster beside a bare kube-scheduler over sizes of the cluster: what gang planning adds.

::

    each size:  control plane of its own ─► nodes ─► round, round, … ─► figures
                    (fourphase.run.turns.play: both sides in turns, the order turns every round)

A size that fails keeps its finished rounds, and the others are measured all the same. So does one
that a signal breaks off: the results so far are stored after every round.

How many gangs a size gets: pods at most as many as the bare side binds in ``BARE_BUDGET_S``, so
that a round lasts minutes where a bare kube-scheduler is slow; ``MOST_PODS`` where it is fast; and
never more than there are hosts.
"""

import statistics
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final

import aiohttp

from loadtest.fourphase.load.spec import SpecError
from loadtest.fourphase.site import turns
from loadtest.fourphase.site.turns import Load, Round, Turn
from loadtest.testbed.client.api import ApiFailed
from loadtest.testbed.client.nodes import create_nodes, grid
from loadtest.testbed.client.observer import StuckError
from loadtest.testbed.controlplane.assets import Minor
from loadtest.testbed.controlplane.controlplane import ControlPlane, Options
from loadtest.testbed.controlplane.programs import ProgramFailed
from loadtest.testbed.deployment.muster import RBAC
from loadtest.testbed.standins.simulated import Plane

STANDARD_SIZES: Final = (1_000, 5_000, 20_000, 130_000)  # nodes
GANG: Final = 256  # pods; the largest gang of the published phases
ROUNDS: Final = 3
MOST_PODS: Final = 2_048
BARE_BUDGET_S: Final = 45.0
LIMIT_S: Final = 120.0  # of one load on one side: where a machine is slower than reckoned with
# Nodes times pods/s of a bare kube-scheduler where its cost per node rules: 24 pods/s at 130,000
# nodes, measured on two cores. Only the number of gangs follows from it.
_BARE_NODE_PODS_PER_S: Final = 130_000 * 24

# What one size may fail by; a control plane that was never built fails them all, so it is not here.
_FAILURES: Final = (StuckError, ProgramFailed, ApiFailed, aiohttp.ClientError, OSError)

Open = Callable[[], AbstractAsyncContextManager[Plane]]
Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Asked:
    """What is asked for."""

    #: Numbers of nodes; empty: the standard ones up to the run's size, and that size.
    sizes: tuple[int, ...] = ()
    #: Pods of a gang; ``None``: ``GANG``, but at most half of the nodes.
    gang: int | None = None
    rounds: int = ROUNDS
    #: Whether the phases are left out.
    alone: bool = False


def loads(asked: Asked, nodes: int, real: Minor | None) -> tuple[Load, ...]:
    """Decide what is measured, smallest size first; raises ``SpecError``."""
    if real is None:
        raise SpecError(
            "--beside-bare: needs --control-plane real: the simulated one schedules with a "
            "stand-in written in Python, and a rate beside that says nothing about kube-scheduler"
        )
    if asked.rounds < 1:
        raise SpecError(f"--rounds {asked.rounds}: must be at least 1")
    sizes = asked.sizes or (*(size for size in STANDARD_SIZES if size < nodes), nodes)
    return tuple(_load(size, asked.gang) for size in sorted(set(sizes)))


def _load(nodes: int, gang: int | None) -> Load:
    if nodes < 2:
        raise SpecError(f"--beside-bare: {nodes} nodes: a rate needs two pods, of a host each")
    size = min(GANG, nodes // 2) if gang is None else gang
    if not 1 <= size <= nodes:
        raise SpecError(
            f"--gang-size {size}: a pod takes a host, so between 1 and the {nodes} nodes"
        )
    affordable = int(BARE_BUDGET_S * _BARE_NODE_PODS_PER_S / nodes)
    gangs = max(1, min(MOST_PODS, nodes, affordable) // size)
    return Load(nodes, gangs, size, limit_s=LIMIT_S)


# ── measuring ───────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class AtSize:
    """What came out at one size."""

    load: Load
    rounds: tuple[Round, ...]
    #: Why rounds are missing, empty if none is.
    failure: str = ""

    def figures(self) -> dict[str, Any]:
        """Return the size as it stands in the report; without a round it has no ratio."""
        sides = {"bare": [r.bare for r in self.rounds], "muster": [r.muster for r in self.rounds]}
        return {
            "nodes": self.load.nodes,
            "gangs": self.load.gangs,
            "gang_size": self.load.size,
            "pods": self.load.pods,
            "ratio": _spread([each.ratio for each in self.rounds]),
            "ratio_whole_path": _spread([each.ratio_flow for each in self.rounds]),
            **{name: _side(turns_) for name, turns_ in sides.items()},
            "rounds": [_round(each) for each in self.rounds],
            "findings": [text for turn in sides["muster"] for text in turn.findings],
            "failure": self.failure,
        }


async def measure(
    sizes: Sequence[Load], rounds: int, open_: Open, say: Say, keep: Callable[[AtSize], None]
) -> None:
    """Measure each size on a control plane opened for it; raises ``AssetError``.

    ``keep`` is called with a size after each of its rounds, with all rounds so far, and at its end.
    """
    for load in sizes:
        keep(await _at_size(load, rounds, open_, say, keep))


async def _at_size(
    load: Load, rounds: int, open_: Open, say: Say, keep: Callable[[AtSize], None]
) -> AtSize:
    """Measure one size; what fails is in the result."""
    done: list[Round] = []
    try:
        async with open_() as plane, plane.api() as api:
            say(f"{load.nodes:,} nodes, {load.gangs:,} gangs of {load.size:,}")
            await create_nodes(api, grid(load.nodes))
            for number in range(rounds):
                say(f"round {number + 1} of {rounds}")
                done.append(await turns.play(plane, api, load, number))
                say(_line(done[-1]))
                keep(AtSize(load, tuple(done), _lacks(rounds, number + 1)))
    except (*_FAILURES, ExceptionGroup) as error:
        failure = first(error)
        if not isinstance(failure, _FAILURES):
            raise
        return AtSize(load, tuple(done), str(failure) or type(failure).__name__)
    return AtSize(load, tuple(done))


@asynccontextmanager
async def control_plane(minor: Minor) -> AsyncIterator[Plane]:
    """Run the real one."""
    async with ControlPlane(Options(minor=minor, rbac=RBAC)) as plane:
        yield plane


def first(error: Exception) -> Exception:
    """Return the first failure of a group of tasks, or the error itself."""
    while isinstance(error, ExceptionGroup):
        error = error.exceptions[0]
    return error


def _lacks(rounds: int, done: int) -> str:
    """Return what a report says of a size that nothing more is heard of."""
    return "" if done == rounds else f"broken off after round {done} of {rounds}"


def _line(each: Round) -> str:
    muster, bare = each.muster.drain.pods_per_second, each.bare.drain.pods_per_second
    return f"Muster {muster:,.0f} pods/s, bare {bare:,.0f} pods/s: {each.ratio:.2f}x"


# ── figures ─────────────────────────────────────────────────────────────────────────────


def _spread(ratios: list[float]) -> dict[str, float]:
    """Return median, lowest and highest; nothing of nothing."""
    if not ratios:
        return {}
    found = {"median": statistics.median(ratios), "min": min(ratios), "max": max(ratios)}
    return {name: round(value, 3) for name, value in found.items()}


def _side(played: list[Turn]) -> dict[str, Any]:
    """Return the medians of one side over its rounds, and how many pods all of them measured."""
    if not played:
        return {}
    return {
        "pods_measured": sum(turn.drain.pods for turn in played),
        "pods_per_second": _median(turn.drain.pods_per_second for turn in played),
        "whole_path_pods_per_second": _median(turn.flow.pods_per_second for turn in played),
        "cpu_s_per_pod": _median_cpu([_cpu_per_pod(turn) for turn in played]),
    }


def _round(each: Round) -> dict[str, Any]:
    return {
        "first": "bare" if each.bare_first else "muster",
        "ratio": round(each.ratio, 3),
        "ratio_whole_path": round(each.ratio_flow, 3),
        "bare": _turn(each.bare),
        "muster": _turn(each.muster),
    }


def _turn(turn: Turn) -> dict[str, Any]:
    drain, flow = turn.drain, turn.flow
    return {
        "pods": drain.pods,
        "pods_per_second": round(drain.pods_per_second, 2),
        "cpu_s_per_pod": _cpu_per_pod(turn),
        "whole_path": {
            "pods": flow.pods,
            "pods_per_second": round(flow.pods_per_second, 2),
            "makespan_s": round(flow.makespan_s, 3),
            "creation_s": round(flow.creation_s, 3),
        },
    }


def _cpu_per_pod(turn: Turn) -> dict[str, float]:
    """Return each program's CPU seconds for one pod of the backlog."""
    return {name: round(used / turn.drain.pods, 6) for name, used in turn.drain.cpu_s.items()}


def _median(values: Iterator[float]) -> float:
    return round(statistics.median(values), 2)


def _median_cpu(every: list[Mapping[str, float]]) -> dict[str, float]:
    return {n: round(statistics.median(each[n] for each in every), 6) for n in every[0]}
