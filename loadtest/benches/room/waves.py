"""`muster bench waves`: three waves of gangs, each of which must have the one before give way.

::

    0 s   priority 1           fills the cluster
    5 s   priority 1,000       fills it, too: the first wave gives way
    10 s  priority 1,000,000   fills it, too: the second wave gives way
          then the third one leaves, the second and the first come back

The waves are those of kubernetes-sigs/kube-scheduling-perf. Muster decides who gives way
(``makingRoom``); the load test's driver is the kubelets, and submits evicted gangs again once
there is room. Everything else is real: webhook, extender, HTTP. The control plane is the
simulated one, or a real one.
"""

import asyncio
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from rich.console import Console

from loadtest.fourphase.load.schedule import GangPlan, LoadPlan, PhasePlan
from loadtest.fourphase.load.spec import Phase, PriorityClass, Spec
from loadtest.fourphase.report.outcome import Outcome, Settings
from loadtest.fourphase.run.run import run as run_load
from loadtest.fourphase.run.show import Show
from loadtest.testbed.controlplane.assets import Minor

PRIORITIES: Final = (1, 1_000, 1_000_000)
PATIENCE_S: Final = 60.0


@dataclass(frozen=True, slots=True)
class WaveSettings:
    """What is asked for."""

    #: Hosts; each pod takes one.
    nodes: int = 100
    #: Pods of each gang.
    size: int = 10
    #: Seconds from the beginning of a wave to that of the next one.
    interval_s: float = 5.0
    #: Kubernetes minor of a real control plane, ``None``: the simulated one.
    real: Minor | None = None

    def __post_init__(self) -> None:
        """Refuse sizes that do not fill the cluster. Raises ``ValueError``."""
        if self.size < 1 or self.nodes < 20 or self.nodes % self.size:
            raise ValueError(
                f"--nodes {self.nodes} --size {self.size}: a wave fills all nodes with whole "
                "gangs: give at least 20 nodes, and a size that divides them"
            )


def plan(settings: WaveSettings) -> LoadPlan:
    """Return the waves as a load of one phase, after which they leave, the last one first."""
    names = [f"wave{number}" for number in range(len(PRIORITIES))]
    classes = dict(zip(names, (PriorityClass(priority=one) for one in PRIORITIES), strict=True))
    phases = tuple(
        Phase(name=f"leaves{number}", title="", remove=(name,))
        for number, name in reversed(list(enumerate(names)))
    )
    each = settings.nodes // settings.size
    gangs = tuple(
        GangPlan(
            index=wave * each + number,
            name=f"{names[wave]}-{number:04d}",
            phase=0,
            class_=names[wave],
            priority=PRIORITIES[wave],
            size=settings.size,
            at=wave * settings.interval_s,
            per_second=0.0,
            runs=None,
        )
        for wave in range(len(PRIORITIES))
        for number in range(each)
    )
    spec = Spec(nodes=settings.nodes, classes=classes, phases=phases, patience=PATIENCE_S)
    made = (
        PhasePlan(index, phase, () if index else gangs, 0, 0) for index, phase in enumerate(phases)
    )
    return LoadPlan(settings.nodes, 0, 1.0, spec, tuple(made))


def run(settings: WaveSettings) -> dict[str, object]:
    """Measure; returns the figures. Raises ``ProgramFailed`` when a part does not come up."""
    load = plan(settings)
    asked = Settings(settings.nodes, real=settings.real, kubelets="writer", making_room=True)
    show = Show(Console(stderr=True), load, quiet=True, say=lambda _: None)
    with tempfile.TemporaryDirectory(prefix="muster-waves-") as folder:
        outcome = asyncio.run(run_load(asked, load, show, "muster bench waves", Path(folder)))
    return figures(settings, outcome)


def figures(settings: WaveSettings, outcome: Outcome) -> dict[str, object]:
    """Return what is printed."""
    evicted = [size for log in outcome.logs for _, size in log.withdrawn]
    verdict = outcome.verdict
    return {
        "nodes": settings.nodes,
        "gangs_of_a_wave": settings.nodes // settings.size,
        "interval_s": settings.interval_s,
        "wave_seconds": [_seconds(settings, outcome, wave) for wave in range(len(PRIORITIES))],
        "victims": len(evicted),
        "victim_pods": sum(evicted),
        "gave_up": sorted(name for log in outcome.logs for name in log.stuck),
        "partial_gangs": len(verdict.partial_gangs),
        "longest_partial_s": round(verdict.longest_partial_s, 1),
        "bound_twice": len(verdict.bound_twice) + len(verdict.over_allocatable),
        "never_placed": len(verdict.unplaced_gangs),
        "good": verdict.good,
        "seconds": round(outcome.seconds, 1),
    }


def _seconds(settings: WaveSettings, outcome: Outcome, wave: int) -> float | None:
    """Return the time from the submission of a wave until all of its pods ran at once.

    ``None``: they never did, since the next wave came before.
    """
    pods, each = outcome.watching.pods, settings.nodes // settings.size
    first = np.isin(pods.gang, range(wave * each, (wave + 1) * each))
    began = wave * settings.interval_s
    until = outcome.logs[0].arrived
    bound, gone = pods.time("bound"), pods.time("gone")
    early = first & (bound <= until)
    if int(early.sum()) < settings.nodes:
        return None
    last = float(bound[early].max())
    left = gone[early]
    whole = not np.any(left[~np.isnan(left)] < last)
    return round(last - began, 3) if whole else None
