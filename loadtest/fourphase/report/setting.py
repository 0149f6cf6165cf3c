"""The parts of the report that say what the load ran on and what was replayed."""

from collections import Counter
from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from loadtest.fourphase.driver.driver import PhaseLog
from loadtest.fourphase.load.schedule import LoadPlan
from loadtest.fourphase.report import figures
from loadtest.fourphase.site.columns import Samples, Times
from loadtest.fourphase.site.watches import Watching
from loadtest.traces.fleet import Fleet

Figures = dict[str, Any]
WAIT_HEAD: Final = ("created → whole", "count", "in", *figures.SHARES)
KIND_HEAD: Final = ("GPU model", "hosts", "GPUs each", "GPUs")


def of_fleet(name: str, fleet: Fleet, seed: int) -> Figures:
    """Return the fleet's part of the report; ``models``: from the most hosts to the fewest."""
    kinds = Counter((host.model, host.gpus) for host in fleet.hosts)
    return {
        "name": name,
        "title": fleet.title,
        "source": fleet.source,
        "seed": seed,
        "hosts": len(fleet.hosts),
        "gpus": fleet.gpus,
        "zones": len({host.zone for host in fleet.hosts}),
        "blocks": len({(host.zone, host.block) for host in fleet.hosts}),
        "racks": len({(host.block, host.rack) for host in fleet.hosts}),
        "nvlink_domains": len({host.nvlink for host in fleet.hosts} - {""}),
        "levels": list(fleet.levels),
        "models": [
            {"model": model, "hosts": count, "gpus_per_host": gpus, "gpus": gpus * count}
            for (model, gpus), count in kinds.most_common()
        ],
    }


def of_trace(
    plan: LoadPlan, watching: Watching, samples: Samples, logs: list[PhaseLog]
) -> Figures | None:
    """Return what came of a trace, ``None`` where phases ran.

    ``wait_s``: seconds of this run from the first pod created to the last bound, by ``jobs``
    (all) and ``gangs`` (of several pods); ``wait_trace_s``: the same in the trace's time.
    ``utilisation``: GPUs in use while jobs arrived.
    """
    played = plan.replayed
    if played is None or not logs:
        return None
    began = logs[0].began
    there = figures.within(samples.column("at"), began, began + played.arriving_s)
    waits = {"jobs": _waits(plan, watching, least=1), "gangs": _waits(plan, watching, least=2)}
    return {
        "name": played.name,
        "source": played.source,
        "seed": plan.seed,
        "jobs": played.jobs,
        "gangs": played.gangs,
        "earlier_jobs": played.earlier,
        "load": played.load,
        "speed": round(played.speed, 4),
        "submissions_closer": round(played.closer, 4),
        "arriving_s": round(played.arriving_s, 3),
        "left_out_too_large": played.too_large,
        "rounded_up_to_whole_gpus": played.rounded_up,
        "started": {name: len(wait) for name, wait in waits.items()},
        "unplaced": logs[0].stuck,
        "wait_s": {name: figures.percentiles(wait) for name, wait in waits.items()},
        "wait_trace_s": {
            name: figures.percentiles(wait * played.speed) for name, wait in waits.items()
        },
        "utilisation": figures.utilisation(samples, there),
    }


def _waits(plan: LoadPlan, watching: Watching, *, least: int) -> Times:
    """Return first created → last bound of the arriving jobs of ``least`` pods or more."""
    first = plan.replayed.earlier if plan.replayed else 0
    seen = [s for s in watching.gangs.values() if s.gang >= first and s.size >= least]
    blocks = np.array([(each.first, each.size) for each in seen], np.int64).reshape(-1, 2)
    return figures.start_ups(watching.pods, blocks, np.ones(len(seen), np.bool_))


# ── in words ────────────────────────────────────────────────────────────────────────────


def lines(report: Figures) -> Iterator[str]:
    """Yield sentences on fleet and trace."""
    fleet, trace = report["fleet"], report["trace"]
    nvlink = f", {fleet['nvlink_domains']:,} NVLink domains" if fleet["nvlink_domains"] else ""
    yield (
        f"Fleet {fleet['name']}, seed {fleet['seed']}: {fleet['hosts']:,} hosts, "
        f"{fleet['gpus']:,} GPUs; zones {fleet['zones']:,}, blocks {fleet['blocks']:,}, "
        f"racks {fleet['racks']:,}{nvlink}. Source: {fleet['source']}."
    )
    if trace is None:
        return
    yield (
        f"Trace {trace['name']}, seed {trace['seed']}: {trace['jobs']:,} jobs, "
        f"{trace['gangs']:,} of several pods, in {trace['arriving_s']:,.0f} s; "
        f"{trace['earlier_jobs']:,} more ran before. Submissions "
        f"{trace['submissions_closer']:,.4g} times closer for a load of {trace['load']:.0%}, "
        f"then everything {trace['speed']:,.4g} times as fast. Source: {trace['source']}."
    )
    yield (
        f"GPUs in use while jobs arrived: {trace['utilisation']['mean']:.1%}, most "
        f"{trace['utilisation']['max']:.1%}; not placed: {len(trace['unplaced']):,}."
    )
    if out := trace["left_out_too_large"]:
        yield f"{out:,} jobs were left out: the empty fleet cannot hold them."
    if part := trace["rounded_up_to_whole_gpus"]:
        yield f"{part:,} tasks asked for a part of a GPU and got a whole one."


def tables(report: Figures) -> Iterator[tuple[tuple[str, ...], list[list[str]]]]:
    """Yield head and rows of what there is: GPU models that differ, waits of a trace."""
    for head, rows in ((KIND_HEAD, _kind_rows(report)), (WAIT_HEAD, _wait_rows(report))):
        if rows:
            yield head, rows


def _kind_rows(report: Figures) -> list[list[str]]:
    """Return the GPU models under ``KIND_HEAD``; nothing where all hosts are alike."""
    kinds = report["fleet"]["models"]
    if len(kinds) == 1:
        return []
    return [
        [each["model"] or "none", f"{each['hosts']:,}", f"{each['gpus_per_host']}",
         f"{each['gpus']:,}"]
        for each in kinds
    ]  # fmt: skip


def _wait_rows(report: Figures) -> list[list[str]]:
    """Return the waits of a trace under ``WAIT_HEAD``, in both times; nothing without one."""
    trace = report["trace"]
    if trace is None:
        return []
    count = trace["started"]
    times = (("this run", trace["wait_s"]), ("the trace's time", trace["wait_trace_s"]))
    return [
        [name, f"{count[name]:,}", words, *(f"{found[k]:,.2f} s" for k in figures.SHARES)]
        for words, waits in times
        for name, found in waits.items()
        if found
    ]
