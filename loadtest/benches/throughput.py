"""`muster bench throughput`: pods/s with Muster beside a bare kube-scheduler, real control plane.

What a round is, and what is measured in it, stands in loadtest.fourphase.site.turns.
Ratios are per round, Muster over bare for rates and bare over Muster for durations: more than 1 is
in Muster's favour.
"""

from __future__ import annotations

import asyncio
import statistics
from dataclasses import dataclass

from loadtest.fourphase.site import turns
from loadtest.fourphase.site.turns import Round, Turn
from loadtest.testbed.client.nodes import create_nodes, grid
from loadtest.testbed.controlplane.controlplane import ControlPlane, Options
from loadtest.testbed.deployment.muster import RBAC


@dataclass(frozen=True, slots=True)
class Settings:
    """What is asked on the command line."""

    nodes: int = 5000
    gangs: int = 8
    size: int = 256
    rounds: int = 5
    extender_binds: bool = False

    def __post_init__(self) -> None:
        """Refuse sizes that cannot be measured. Each pod takes a whole host, as in training."""
        for name in ("nodes", "gangs", "size", "rounds"):
            if getattr(self, name) < 1:
                raise ValueError(f"--{name} {getattr(self, name)}: must be at least 1")
        if self.gangs * self.size > self.nodes:
            wanted = self.gangs * self.size
            raise ValueError(f"{wanted} pods of one host each do not fit on --nodes {self.nodes}")
        if self.gangs * self.size < 2:
            raise ValueError("a rate needs two pods: raise --size or --gangs")


def run(settings: Settings) -> dict[str, object]:
    """Measure; returns the figures under the keys that README.md explains."""
    return asyncio.run(_run(settings))


async def _run(settings: Settings) -> dict[str, object]:
    load = turns.Load(
        settings.nodes, settings.gangs, settings.size, extender_binds=settings.extender_binds
    )
    async with ControlPlane(Options(rbac=RBAC)) as plane, plane.api() as api:
        await create_nodes(api, grid(settings.nodes))
        return _report([await turns.play(plane, api, load, n) for n in range(settings.rounds)])


def _report(rounds: list[Round]) -> dict[str, object]:
    rates = [each.ratio for each in rounds]
    bare, muster = [each.bare for each in rounds], [each.muster for each in rounds]
    return {
        "ratio": statistics.median(rates),
        "ratio_min": min(rates),
        "ratio_max": max(rates),
        "ratio_makespan": statistics.median(each.ratio_flow for each in rounds),
        "muster_pods_per_second": statistics.median(t.drain.pods_per_second for t in muster),
        "bare_pods_per_second": statistics.median(t.drain.pods_per_second for t in bare),
        "rounds": len(rounds),
        "muster_makespan_s": statistics.median(t.flow.makespan_s for t in muster),
        "bare_makespan_s": statistics.median(t.flow.makespan_s for t in bare),
        "muster_creation_s": statistics.median(t.flow.creation_s for t in muster),
        "bare_creation_s": statistics.median(t.flow.creation_s for t in bare),
        "muster_cpu_s": _median_cpu(muster),
        "bare_cpu_s": _median_cpu(bare),
        "findings": sum(len(turn.findings) for turn in muster),
    }


def _median_cpu(turns_: list[Turn]) -> dict[str, float]:
    every = [turn.drain.cpu_s for turn in turns_]
    return {name: round(statistics.median(cpu[name] for cpu in every), 2) for name in every[0]}
