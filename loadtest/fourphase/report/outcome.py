"""What came out of a run, as one JSON object; every other form of the report is made from it."""

import os
import platform
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from loadtest.fourphase.driver.driver import PhaseLog
from loadtest.fourphase.faults import aftermath
from loadtest.fourphase.faults.faults import Record
from loadtest.fourphase.load.replayreport import Replay
from loadtest.fourphase.load.schedule import LoadPlan
from loadtest.fourphase.report import figures, setting, topology
from loadtest.fourphase.report.curve import Asked
from loadtest.fourphase.report.figures import Ids, Mask
from loadtest.fourphase.report.verdict import Verdict
from loadtest.fourphase.site import kubelets, processes
from loadtest.fourphase.site.columns import Samples
from loadtest.fourphase.site.kubelets import Kubelets
from loadtest.fourphase.site.watches import Watching
from loadtest.testbed.controlplane.assets import Minor

GIVES_WAY: Final = (
    "Lower classes gave way because the load generator withdrew whole gangs, lowest priority and "
    "latest first, and submitted them again when there was room: a queue's work. With "
    "--making-room Muster does it."
)
MUSTER_MADE_ROOM: Final = (
    "Lower classes gave way by Muster's decision (makingRoom): it evicted whole gangs, and the "
    "load generator ended the evicted pods, as kubelets do. It submitted the gangs again when "
    "there was room, as a queue resumes suspended jobs."
)
SHARED: Final = "Everything, the load driver included, ran on this one machine."
_BINS: Final = 240  # of a plot over time


@dataclass(frozen=True, slots=True)
class Settings:
    """What was asked for."""

    nodes: int
    #: Pods of a full cluster.
    pods: int | None = None
    #: Kubernetes minor of a real control plane, ``None``: the simulated one.
    real: Minor | None = None
    phases: Path | None = None
    seed: int = 0
    #: The comparison with a bare kube-scheduler, if one was asked for.
    beside: Asked | None = None
    fleet: str = "grid"
    #: A trace that is replayed instead of the phases.
    replay: Replay | None = None
    #: Folder of published fleets and traces.
    data: Path = Path()
    #: The values of ``--chaos`` (``loadtest.fourphase.load.chaosargs``).
    chaos: tuple[str, ...] = ()
    #: What should run the pods; ``None``: chosen by the size.
    kubelets: str | None = None
    #: Whether Muster has gangs give way; otherwise the load generator withdraws them.
    making_room: bool = False
    #: Whether the webhook asks for no reservations (docs/adr/0033), so that every pod is gated.
    gated: bool = False
    #: Whether the load is run once more, with the load generator's withdrawals.
    beside_withdrawal: bool = False

    def pods_run_by(self) -> Kubelets:
        """Return who runs the pods. Raises ``SpecError`` for one that cannot."""
        return kubelets.chosen(self.kubelets, real=self.real is not None, nodes=self.nodes)


@dataclass(frozen=True, slots=True)
class Outcome:
    """Everything a report is made from."""

    settings: Settings
    command: str
    plan: LoadPlan
    residents: int
    watching: Watching
    samples: Samples
    logs: list[PhaseLog]
    verdict: Verdict
    #: Length of the run.
    seconds: float
    faults: Sequence[Record] = ()
    revived: int = 0  # extenders that lost their Lease, ended and were started again
    early: bool = False  # it was ended by a signal

    def figures(self) -> dict[str, Any]:
        """Return the report. Times in seconds since the first phase began."""
        settings = self.settings
        return {
            "command": self.command,
            "control_plane": "real" if settings.real else "simulated",
            "kubernetes": settings.real,
            "nodes": settings.nodes,
            "resident_pods": self.residents,
            "seed": settings.seed,
            "making_room": settings.making_room,
            "gated": settings.gated,
            "pods_gated": self.watching.gated,
            "scale": self.plan.scale,
            "machine": machine(),
            "seconds": round(self.seconds, 2),
            "ended_early": self.early,
            "verdict": self.verdict.figures(),
            "fleet": setting.of_fleet(settings.fleet, self.watching.fleet, settings.seed),
            "trace": setting.of_trace(self.plan, self.watching, self.samples, self.logs),
            "notes": [
                *([] if settings.replay else [_how_room_was_made(settings)]),
                kubelets.NOTES[settings.pods_run_by()],
                SHARED,
                *aftermath.notes(self.revived),
                *_given_up(self.logs, self.plan.spec.patience),
            ],
            "total": self._span(0.0, self.seconds + 1.0),
            "phases": [self._phase(log) for log in self.logs],
            "faults": aftermath.figures(self.faults, self.watching.pods.time("bound")),
            "series": self._series(),
            "latency_cdf": self._cdf(),
            "topology": topology.figures(
                self.watching, {log.plan.spec.name: log.arrived for log in self.logs}
            ),
        }

    def _phase(self, log: PhaseLog) -> dict[str, Any]:
        spec = log.plan.spec
        return {
            "name": spec.name,
            "title": spec.title,
            "began": round(log.began, 3),
            "ended": round(log.ended, 3),
            "arrivals": [
                {"class": each.class_, "pods_at_full_size": each.pods, "figure": each.figure}
                for each in spec.arrivals
            ],
            "published": [{"text": each.text, "figure": each.figure} for each in spec.published],
            "pods_arriving": log.plan.pods,
            "gangs_arriving": len(log.plan.gangs),
            "ended_early": log.cut,
            "placed_after_s": round(log.arrived - log.began, 3),
            "gave_way": _leaving(log.withdrawn, log.began),
            "left_drained_nodes": _leaving(log.drained, log.began),
            "returned": {"gangs": log.returned_gangs, "pods": log.returned_pods},
            "finished_gangs": log.finished_gangs,
            "drained_nodes": log.drained_nodes,
            "failed_nodes": log.failed_nodes,
            "replaced_pods": log.replaced_pods,
            "unplaced_gangs": log.stuck,
            **self._span(log.began, log.ended),
            "arriving": self._arriving(log),
        }

    def _arriving(self, log: PhaseLog) -> dict[str, Any]:
        """Return the rates of what the phase brings, without what returns or leaves after it."""
        pods = self.watching.pods
        created, bound = pods.time("created"), pods.time("bound")
        brought = np.isin(pods.gang, [gang.index for gang in log.plan.gangs])
        brought &= figures.within(created, log.began, log.arrived)
        rates = {"created": created[brought], "bound": bound[brought]}
        return {name: figures.rate(times).figures() for name, times in rates.items()}

    # ── any stretch of time ─────────────────────────────────────────────────────────────

    def _span(self, began: float, ended: float) -> dict[str, Any]:
        """Return the figures of a phase, or of all phases together."""
        pods = self.watching.pods
        created, bound = pods.time("created"), pods.time("bound")
        came = figures.within(created, began, ended)
        there = figures.within(self.samples.column("at"), began, ended)
        waits = figures.by_class(pods, self._class_of_gang(), self._classes(), came)
        return {
            "pods_created": figures.rate(created[came]).figures(),
            "pods_bound": figures.rate(bound[figures.within(bound, began, ended)]).figures(),
            "create_to_bound_s": {name: figures.percentiles(w) for name, w in waits.items()},
            "gang_start_s": self._gang_starts(began, ended),
            "utilisation": figures.utilisation(self.samples, there),
            "gangs_at_samples": self._gangs_at(there),
            "cpu_s": self._cpu(there),
            "rss_mib": self._memory(there),
        }

    def _gang_starts(self, began: float, ended: float) -> dict[str, float]:
        seen = list(self.watching.gangs.values())
        blocks = np.array([(each.first, each.size) for each in seen], np.int64).reshape(-1, 2)
        created = self.watching.pods.time("created")
        chosen = figures.within(created[blocks[:, 0]], began, ended)
        return figures.percentiles(figures.start_ups(self.watching.pods, blocks, chosen))

    def _gangs_at(self, there: Mask) -> dict[str, int]:
        column = self.samples.column
        partial = column("gangs_partial")[there]
        return {
            "samples": int(there.sum()),
            "most_whole": int(figures.highest(column("gangs_whole"), there)),
            "most_between": int(figures.highest(column("gangs_partial"), there)),
            "between_at_last": int(partial[-1]) if len(partial) else 0,
        }

    def _cpu(self, there: Mask) -> dict[str, float]:
        column = self.samples.column
        used = {
            name: figures.increase(column(processes.cpu(name)), there)
            for name in processes.names(self.samples.names)
        }
        return figures.rounded(used)

    def _memory(self, there: Mask) -> dict[str, float]:
        column = self.samples.column
        used = {
            name: figures.highest(column(processes.memory(name)), there)
            for name in processes.names(self.samples.names)
        }
        return figures.rounded(used, 1)

    # ── what is drawn ───────────────────────────────────────────────────────────────────

    def _series(self) -> dict[str, Any]:
        width = max(self.seconds / _BINS, 0.5)
        pods = self.watching.pods
        rates = {
            name: np.round(figures.histogram(pods.time(name), self.seconds, width), 2).tolist()
            for name in ("created", "bound")
        }
        samples = {
            name: [None if np.isnan(v) else round(float(v), 4) for v in self.samples.column(name)]
            for name in self.samples.names
        }
        return {"bin_s": width, "pods_per_s": rates, "samples": samples}

    def _cdf(self) -> dict[str, Any]:
        """Return class → create → bound seconds at each hundredth, and the number of pods."""
        every = np.ones(self.watching.pods.rows, np.bool_)
        waits = figures.by_class(self.watching.pods, self._class_of_gang(), self._classes(), every)
        return {
            name: {
                "pods": len(wait),
                "s": np.round(np.quantile(wait, np.linspace(0, 1, 101)), 4).tolist(),
            }
            for name, wait in waits.items()
        }

    def _classes(self) -> list[str]:
        return list(self.plan.spec.classes)

    def _class_of_gang(self) -> Ids:
        names = {name: index for index, name in enumerate(self._classes())}
        return np.array([names[gang.class_] for gang in self.plan.gangs] or [-1], np.int32)


def _how_room_was_made(settings: Settings) -> str:
    return MUSTER_MADE_ROOM if settings.making_room else GIVES_WAY


def _given_up(logs: Iterable[PhaseLog], patience: float) -> Iterator[str]:
    """Yield what phases did not wait for any longer, though it may have been placed later."""
    for log in logs:
        if log.stuck:
            yield (
                f"Phase {log.plan.spec.name} gave {len(log.stuck):,} gangs up when nothing had "
                f"moved for {patience:.0f} s: {'; '.join(log.lacking)}."
            )


def _leaving(gangs: list[tuple[float, int]], began: float) -> dict[str, float]:
    """Return gangs, pods and pods per second of gangs that were taken off whole."""
    pods = sum(size for _, size in gangs)
    last = max((at for at, _ in gangs), default=began)
    rate = pods / (last - began) if last > began else 0.0
    return {"gangs": len(gangs), "pods": pods, "per_second": round(rate, 1)}


def machine() -> dict[str, object]:
    """Return what the figures were taken on."""
    pages, size = os.sysconf("SC_PHYS_PAGES"), os.sysconf("SC_PAGE_SIZE")
    return {
        "cores": len(os.sched_getaffinity(0)),
        "memory_gib": round(pages * size / 1024**3, 1),
        "architecture": platform.machine(),
        "python": platform.python_version(),
    }
