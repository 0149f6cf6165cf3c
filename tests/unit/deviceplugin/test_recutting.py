"""The node label nvidia.com/mig.config, followed on a simulated DGX H100."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from deviceplugin.backends.jointbackend import JointBackend
from deviceplugin.backends.simulated.backend import Simulated
from deviceplugin.backends.simulated.machine import load
from deviceplugin.mig.layouts import LayoutError
from deviceplugin.mig.reconfiguration import LABEL, STATE_LABEL, LayoutProgress, LayoutState
from deviceplugin.model.inventory import Inventory
from deviceplugin.model.signals import Reading, Signal
from deviceplugin.publication.nodepatch import PUBLISHED
from deviceplugin.recutting import Recutting
from muster.kube import wire

WELL_WITHIN_S = 20.0


def node(layout: str, state: str = "", *, ours: bool = True) -> wire.Node:
    labels = {LABEL: layout} if layout else {}
    labels |= {STATE_LABEL: state} if state else {}
    notes = {PUBLISHED: STATE_LABEL} if ours else {}
    return wire.Node(metadata=wire.ObjectMeta(name="n", labels=labels, annotations=notes))


@dataclass
class Usage:
    """Which devices containers have; ``known``: whether the kubelet answers."""

    used: set[str]
    known: bool = True
    #: ids of pods that have ended; the kubelet lists them until it is asked again
    ended: set[str] = field(default_factory=set)

    async def refresh(self) -> None:
        self.used -= self.ended

    def ids(self) -> set[str]:
        if not self.known:
            raise LayoutError("not known who has which devices: no socket")
        return self.used


class Watched(Recutting):
    """Recutting whose progress can be waited for."""

    usage: Usage
    seen: list[LayoutProgress | None]
    news: asyncio.Event

    async def until(self, layout: str, state: LayoutState) -> LayoutProgress:
        async with asyncio.timeout(WELL_WITHIN_S):
            while self.progress is None or (self.progress.layout, self.progress.state) != (
                layout,
                state,
            ):
                await self.news.wait()
                self.news.clear()
        return self.progress


@pytest.fixture
def usage() -> Usage:
    return Usage(set())


@pytest.fixture
async def recutting(usage: Usage, tmp_path: Path) -> AsyncIterator[Watched]:
    async def hold(_: frozenset[str]) -> None:
        pass

    def changed(progress: LayoutProgress | None) -> None:
        made.seen.append(progress)
        made.news.set()

    backend = Simulated(load("dgx-h100"), node="n")
    made = Watched(backend, usage, hold, tmp_path / "layouts.yaml", retry_s=0.05)
    made.seen, made.news = [], asyncio.Event()
    made.progress_changes.listen(changed)
    (tmp_path / "layouts.yaml").write_text(
        "version: v1\nmig-configs:\n"
        "  mine: [{devices: [0], mig-enabled: true, mig-devices: {3g.40gb: 2}}]\n"
    )
    running = asyncio.create_task(made.run())
    yield made
    running.cancel()
    await asyncio.wait((running,))


async def cut(recutting: Recutting) -> list[int]:
    """Return how many instances each GPU has."""
    gpus = (await recutting.backend.inventory()).gpus
    return [len(gpu.mig.instances) if gpu.mig else 0 for gpu in gpus]


async def test_the_gpus_are_cut_as_the_label_says(recutting: Watched) -> None:
    recutting.node_changed(node("all-balanced"))
    await recutting.until("all-balanced", LayoutState.SUCCESS)
    assert recutting.seen == [
        LayoutProgress("all-balanced", LayoutState.PENDING),
        LayoutProgress("all-balanced", LayoutState.SUCCESS),
    ]
    assert await cut(recutting) == [4] * 8
    recutting.node_changed(node("mine", "success"))
    await recutting.until("mine", LayoutState.SUCCESS)
    assert await cut(recutting) == [2, 4, 4, 4, 4, 4, 4, 4]


async def test_a_node_without_the_label_is_left_alone(recutting: Watched) -> None:
    recutting.node_changed(node(""))
    await asyncio.sleep(0.1)
    assert recutting.seen == []
    recutting.node_changed(node("all-7g.80gb"))
    await recutting.until("all-7g.80gb", LayoutState.SUCCESS)
    recutting.node_changed(node("", "success"))
    await asyncio.sleep(0.1)
    assert recutting.progress is None  # the state is taken off the node, the cut stays
    assert await cut(recutting) == [1] * 8


async def test_what_failed_is_tried_again_without_the_label_going_to_and_fro(
    recutting: Watched, usage: Usage
) -> None:
    usage.used.add((await recutting.backend.inventory()).gpus[5].uuid)
    recutting.node_changed(node("all-balanced"))
    failed = await recutting.until("all-balanced", LayoutState.FAILED)
    assert "index 5" in failed.reason
    await asyncio.sleep(0.2)
    usage.used.clear()
    await recutting.until("all-balanced", LayoutState.SUCCESS)
    assert [p.state for p in recutting.seen if p] == [
        LayoutState.PENDING,
        LayoutState.FAILED,
        LayoutState.SUCCESS,
    ]


async def test_what_failed_is_tried_at_once_when_devices_are_released(
    recutting: Watched, usage: Usage
) -> None:
    recutting.retry_s = 3600.0
    usage.used.add((await recutting.backend.inventory()).gpus[5].uuid)
    recutting.node_changed(node("all-balanced"))
    await recutting.until("all-balanced", LayoutState.FAILED)
    usage.used.clear()
    recutting.released()
    await recutting.until("all-balanced", LayoutState.SUCCESS)


async def test_nothing_is_cut_while_it_is_not_known_who_uses_what(
    recutting: Watched, usage: Usage
) -> None:
    usage.known = False
    recutting.node_changed(node("all-balanced"))
    failed = await recutting.until("all-balanced", LayoutState.FAILED)
    assert failed.reason == "not known who has which devices: no socket"
    assert await cut(recutting) == [0] * 8


async def test_a_node_whose_state_another_program_writes_is_left_to_them(
    recutting: Watched,
) -> None:
    """NVIDIA's mig-manager."""
    recutting.node_changed(node("all-balanced", "success", ours=False))
    await asyncio.sleep(0.1)
    assert recutting.seen == []
    assert await cut(recutting) == [0] * 8
    recutting.take_over = ("nvidia.com/",)
    recutting.node_changed(node("all-balanced", "success", ours=False))
    await recutting.until("all-balanced", LayoutState.SUCCESS)


async def test_a_file_that_cannot_be_read_is_reported(recutting: Watched) -> None:
    assert recutting.file is not None
    recutting.file.write_text("version: v7\nmig-configs: {}\n")
    recutting.node_changed(node("all-balanced"))
    assert "version: 'v7'" in (await recutting.until("all-balanced", LayoutState.FAILED)).reason


class Slow(Simulated):
    """A backend whose cuts take time. `most`: how many went on at once, ever."""

    now = most = 0

    async def cut(self, gpu: str, remove: Sequence[str], make: Sequence[tuple[str, int]]) -> None:
        self.now += 1
        self.most = max(self.most, self.now)
        await asyncio.sleep(0.002)
        await super().cut(gpu, remove, make)
        self.now -= 1


async def test_of_changes_in_quick_succession_the_last_counts_and_none_meet(
    recutting: Watched,
) -> None:
    backend = Slow(load("dgx-h100"), node="n")
    recutting.backend = backend
    recutting.node_changed(node("all-1g.10gb"))
    await recutting.until("all-1g.10gb", LayoutState.PENDING)
    for layout in ("all-balanced", "all-2g.20gb", "mine", "all-7g.80gb"):
        recutting.node_changed(node(layout, "pending"))
    await recutting.until("all-7g.80gb", LayoutState.SUCCESS)
    assert await cut(recutting) == [1] * 8
    assert backend.most == 1
    assert recutting.seen == [
        LayoutProgress(layout, state)
        for layout in ("all-1g.10gb", "all-7g.80gb")  # the one that was begun, and the last
        for state in (LayoutState.PENDING, LayoutState.SUCCESS)
    ]


async def test_who_has_what_is_asked_before_each_attempt(recutting: Watched, usage: Usage) -> None:
    gpu = (await recutting.backend.inventory()).gpus[5].uuid
    usage.used, usage.ended = {gpu}, {gpu}  # of a pod that has just ended
    recutting.node_changed(node("all-balanced"))
    await recutting.until("all-balanced", LayoutState.SUCCESS)
    assert LayoutState.FAILED not in {p.state for p in recutting.seen if p}


async def test_where_no_backend_can_cut_the_label_fails_and_says_so(recutting: Watched) -> None:
    only = Simulated(load("dgx-h100"), node="n")
    recutting.backend = JointBackend([Uncut(only)])
    recutting.node_changed(node("all-balanced"))
    failed = await recutting.until("all-balanced", LayoutState.FAILED)
    assert "uncut cannot cut GPUs" in failed.reason


@dataclass
class Uncut:
    """A backend of the same GPUs that has no way to cut them."""

    whole: Simulated
    name = "uncut"

    async def inventory(self) -> Inventory:
        return await self.whole.inventory()

    async def readings(self) -> tuple[Reading, ...]:
        return await self.whole.readings()

    async def signal(self) -> Signal:
        return await self.whole.signal()

    async def close(self) -> None:
        await self.whole.close()
