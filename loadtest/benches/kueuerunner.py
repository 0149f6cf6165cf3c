"""Kueue's own performance runner on Kueue, then on Muster, each on a control plane of its own.

::

    etcd, kube-apiserver ◄── raisedkueue, or the extender with queueing.kueue.workloads
              ▲
              └── runner: makes ClusterQueues and Workloads, ends those that were admitted,
                          writes summary.yaml

The runner is the one of Kueue's module, unchanged (``kueueassets``); it takes both sides for a
cluster in which Kueue runs. Both managers may send as much as they like: Kueue's client is raised
to ``kueueassets.QPS``, Muster's has no limit. Wall time is from the first to the last change of a
ClusterQueue that the runner saw: its clean-up at the end does not count.
"""

from __future__ import annotations

import asyncio
import math
import os
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Final, Literal

import yaml

from loadtest.testbed.client.api import Api, ApiFailed
from loadtest.testbed.controlplane import kueueassets
from loadtest.testbed.controlplane.controlplane import API_SERVER, ETCD, ControlPlane, Options
from loadtest.testbed.controlplane.kueueassets import KueueAssets
from loadtest.testbed.controlplane.programs import Program, ProgramFailed
from loadtest.testbed.deployment.muster import RBAC, Muster

Side = Literal["kueue", "muster"]
SIDES: Final[tuple[Side, ...]] = ("kueue", "muster")

_CRDS: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_SERVED: Final = frozenset(
    ("workloads", "clusterqueues", "localqueues", "resourceflavors", "cohorts", "workloads/status")
)
_LARGE: Final = "large"
_TIMEOUT: Final = "20m"  # of the runner
_BURST: Final = 2 * kueueassets.QPS  # of the runner, as hack/make/test.mk has it


class KueueRunnerError(Exception):
    """A side did not come to its end; the message carries the end of a log."""


@dataclass(frozen=True, slots=True)
class Settings:
    """What is run."""

    #: a configuration that the runner is shipped with
    config: str = "baseline"
    #: of the shipped numbers of workloads; 1: as shipped
    scale: float = 1.0
    #: who is measured, in turn
    sides: tuple[Side, ...] = SIDES

    def __post_init__(self) -> None:
        """Raise ``ValueError`` for a scale that leaves nothing."""
        if not 0 < self.scale <= 1:
            raise ValueError(f"--scale {self.scale:g}: allowed is more than 0 and at most 1")


@dataclass(frozen=True, slots=True)
class SideResult:
    """What the runner wrote about one side."""

    #: from the first to the last change of a ClusterQueue, in seconds
    wall_s: float
    #: mean use of what the ClusterQueues are entitled to, in percent
    usage: float
    #: mean time to admission by class of workloads, in seconds
    admission_s: Mapping[str, float]
    #: mean time from admission to the end by class, in seconds
    held_s: Mapping[str, float]
    #: evictions of all classes
    evictions: int
    #: CPU seconds by program
    cpu_s: Mapping[str, float]

    def shown(self, side: Side) -> dict[str, object]:
        """Return the figures with the side in front of their names."""
        return {
            f"{side}_wall_s": self.wall_s,
            f"{side}_usage": self.usage,
            f"{side}_admission_s": dict(self.admission_s),
            f"{side}_held_s": dict(self.held_s),
            f"{side}_evictions": self.evictions,
            f"{side}_cpu_s": dict(self.cpu_s),
        }


def run(settings: Settings) -> dict[str, object]:
    """Return the figures of all sides. Raises AssetError, ``KueueRunnerError``."""
    assets = kueueassets.ensure(lambda line: print(line, file=sys.stderr))
    generator = scaled(assets.generator(settings.config).read_text("utf-8"), settings.scale)
    found: dict[Side, SideResult] = {}
    for side in settings.sides:
        found[side] = asyncio.run(_measured(side, assets, generator))
        print(f"{side}: {found[side].wall_s:.1f} s", file=sys.stderr)
    return figures(settings, found)


def figures(settings: Settings, found: Mapping[Side, SideResult]) -> dict[str, object]:
    """Return what is shown: ratios are Muster's over Kueue's, usage is Muster's in percent."""
    result: dict[str, object] = {"config": settings.config, "scale": settings.scale}
    kueue, muster = found.get("kueue"), found.get("muster")
    if kueue is not None and muster is not None:
        large = muster.admission_s[_LARGE] / kueue.admission_s[_LARGE]
        result |= {"wall_ratio": muster.wall_s / kueue.wall_s, "large_admission_ratio": large}
    if muster is not None:
        result["usage"] = muster.usage
    for side, one in found.items():
        result |= one.shown(side)
    return result


def scaled(generator: str, scale: float) -> str:
    """Return a configuration of the generator with so much of its workloads, rounded up."""
    config = yaml.safe_load(generator)
    for cohort in config["cohorts"]:
        for queues in cohort["queuesSets"]:
            for workloads in queues["workloadsSets"]:
                workloads["count"] = math.ceil(workloads["count"] * scale)
    return yaml.safe_dump(config, sort_keys=False)


def read_summary(text: str, cpu_s: Mapping[str, float]) -> SideResult:
    """Return what a summary.yaml of the runner says."""
    summary = yaml.safe_load(text)
    queues = list(summary["clusterQueueClasses"].values())
    classes: dict[str, Any] = summary["workloadClasses"]
    begin = min(datetime.fromisoformat(each["firstEventTime"]) for each in queues)
    end = max(datetime.fromisoformat(each["lastEventTime"]) for each in queues)
    used = sum(each["cpuAverageUsage"] for each in queues)
    return SideResult(
        wall_s=(end - begin).total_seconds(),
        usage=100 * used / sum(each["nominalQuota"] for each in queues),
        admission_s={
            name: one["averageTimeToAdmissionMs"] / 1000 for name, one in sorted(classes.items())
        },
        held_s={
            name: (one["averageTimeToFinishMs"] - one["averageTimeToAdmissionMs"]) / 1000
            for name, one in sorted(classes.items())
        },
        evictions=sum(one["totalEvictions"] for one in classes.values()),
        cpu_s=cpu_s,
    )


# --- one side -------------------------------------------------------------------------------------


async def _measured(side: Side, assets: KueueAssets, generator: str) -> SideResult:
    async with ControlPlane(Options(rbac=RBAC)) as plane:
        async with plane.api("admin") as api:
            await install_crds(api)
        if side == "kueue":
            return await _on_kueue(plane, assets, generator)
        return await _on_muster(plane, assets, generator)


async def install_crds(api: Api) -> None:
    """Install Kueue's CRDs and wait until clients find their kinds. Raises AssetError."""
    directory = await asyncio.to_thread(kueueassets.ensure_crds)
    for file in sorted(directory.glob("*.yaml")):
        crd = yaml.safe_load(await asyncio.to_thread(file.read_text, "utf-8"))
        if crd.get("kind") == "CustomResourceDefinition":
            await api.ensure(_CRDS, crd)
    await _until_discovered(api)


async def _until_discovered(api: Api) -> None:
    """Wait until clients in Go find the kinds: they look into the document of the group's version.

    That document is made after the kinds can be listed.
    """
    async with asyncio.timeout(60):
        while not await _names(api) >= _SERVED:  # noqa: ASYNC110 - nothing to wait on
            await asyncio.sleep(0.1)


async def _names(api: Api) -> set[str]:
    try:
        found = await api.get("/apis/kueue.x-k8s.io/v1beta2")
    except ApiFailed:
        return set()
    return {each["name"] for each in found["resources"]}


async def _on_kueue(plane: ControlPlane, assets: KueueAssets, generator: str) -> SideResult:
    manager = Program(
        "kueue",
        [assets.manager, "--kubeconfig", plane.kubeconfig()],
        directory=plane.directory,
        ready=_at_once,
    )
    manager.start()
    try:
        return await _run(plane, assets, generator, [manager])
    finally:
        await manager.stop()


async def _on_muster(plane: ControlPlane, assets: KueueAssets, generator: str) -> SideResult:
    settings = {"queueing": {"kueue": {"workloads": True}}}
    async with Muster(plane, extender=settings, with_webhook=False) as muster:
        return await _run(plane, assets, generator, [muster.extender])


async def _at_once() -> bool:
    return True


async def _run(
    plane: ControlPlane, assets: KueueAssets, generator: str, managers: list[Program]
) -> SideResult:
    with tempfile.TemporaryDirectory(prefix="muster-kueue-runner-") as scratch:
        home = Path(scratch)
        (home / "Makefile").touch()  # the runner looks for one above its directory
        (home / "generator.yaml").write_text(generator, encoding="utf-8")
        words = [f"--o={home}", f"--generatorConfig={home}/generator.yaml", f"--timeout={_TIMEOUT}"]
        words += [f"--qps={kueueassets.QPS}", f"--burst={_BURST}"]
        log = plane.directory / "runner.log"
        with log.open("wb") as out:
            runner = await asyncio.create_subprocess_exec(
                assets.runner,
                *words,
                cwd=home,
                env=os.environ | {"KUBECONFIG": str(plane.kubeconfig())},
                stdout=out,
                stderr=out,
            )
            try:
                cpu_s = await _watched(runner, home / "summary.yaml", plane, managers)
            finally:
                if runner.returncode is None:
                    runner.kill()
                    await runner.wait()
        summary = home / "summary.yaml"
        if not summary.exists():
            tail = "\n".join(log.read_text("utf-8", errors="replace").splitlines()[-25:])
            raise KueueRunnerError(f"the runner ended without a summary\n{tail}")
        return read_summary(summary.read_text("utf-8"), cpu_s)


async def _watched(
    runner: asyncio.subprocess.Process, summary: Path, plane: ControlPlane, managers: list[Program]
) -> dict[str, float]:
    """Wait until the runner has written its summary or ended; return CPU seconds by program."""
    programs = [plane.program(ETCD), plane.program(API_SERVER), *managers]
    while runner.returncode is None and not await asyncio.to_thread(summary.exists):
        for manager in managers:
            if not manager.running:
                raise ProgramFailed(f"{manager.name} ended\n{manager.log_tail()}")
        await asyncio.sleep(0.2)
    cpu_s = {each.name: each.cpu_seconds() for each in programs if each.running}
    await asyncio.sleep(1)  # the summary is one write; the other files follow
    return cpu_s
