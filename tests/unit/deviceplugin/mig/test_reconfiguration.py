"""Cutting a simulated DGX H100 as a label says."""

from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from deviceplugin.backends.simulated.backend import Simulated
from deviceplugin.backends.simulated.machine import load
from deviceplugin.mig import builtin, layouts
from deviceplugin.mig.reconfiguration import LayoutProgress, LayoutState, Reconfigurer
from deviceplugin.tools import faultswitch

MIXED = """
version: v1
mig-configs:
  half:
    - {devices: [0, 1], mig-enabled: true, mig-devices: {"1g.10gb": 2, "3g.40gb": 1}}
    - {devices: [2, 3], mig-enabled: false}
"""


@dataclass
class Node:
    """A node whose label changes. `used`: ids that containers have; `held`: at any time."""

    backend: Simulated
    used: set[str] = field(default_factory=set)
    reported: list[LayoutProgress] = field(default_factory=list)
    held: list[frozenset[str]] = field(default_factory=list)
    at_hold: Callable[[frozenset[str]], None] = lambda _: None

    async def apply(self, layout: str) -> LayoutProgress:
        return await Reconfigurer(
            self.backend,
            layouts=lambda i: builtin.layouts(i.gpus) | layouts.parse(MIXED, source="mixed"),
            in_use=self._in_use,
            hold=self._hold,
            report=self._tell,
        ).apply(layout)

    def _in_use(self) -> Collection[str]:
        return self.used

    async def _hold(self, uuids: frozenset[str]) -> None:
        self.held.append(uuids)
        self.at_hold(uuids)

    async def _tell(self, progress: LayoutProgress) -> None:
        self.reported.append(progress)

    async def cuts(self) -> list[Counter[str] | None]:
        """Return how many of each profile each GPU has, None where MIG is off."""
        return [
            Counter(i.profile for i in gpu.mig.instances) if gpu.mig and gpu.mig.enabled else None
            for gpu in (await self.backend.inventory()).gpus
        ]

    async def instances(self, index: int) -> list[str]:
        """Return the UUIDs of a GPU's instances."""
        mig = (await self.backend.inventory()).gpus[index].mig
        assert mig is not None
        return [instance.uuid for instance in mig.instances]

    async def gpu(self, index: int) -> str:
        return (await self.backend.inventory()).gpus[index].uuid


@pytest.fixture
def control(tmp_path: Path) -> Path:
    return tmp_path / "faults.yaml"


@pytest.fixture
def node(control: Path) -> Node:
    """Eight H100 of 80 GB, none cut."""
    return Node(Simulated(load("dgx-h100"), node="n", control=control))


async def test_a_layout_is_applied_to_every_gpu_and_reported_by_the_state(node: Node) -> None:
    ended = await node.apply("all-balanced")
    assert ended == LayoutProgress("all-balanced", LayoutState.SUCCESS)
    assert node.reported == [LayoutProgress("all-balanced", LayoutState.PENDING), ended]
    assert await node.cuts() == [Counter({"1g.10gb": 2, "2g.20gb": 1, "3g.40gb": 1})] * 8


async def test_one_layout_after_the_other(node: Node) -> None:
    for layout, cut in [
        ("all-1g.10gb", Counter({"1g.10gb": 7})),
        ("all-3g.40gb", Counter({"3g.40gb": 2})),
        ("all-enabled", Counter()),
        ("all-disabled", None),
    ]:
        assert (await node.apply(layout)).state is LayoutState.SUCCESS
        assert await node.cuts() == [cut] * 8


async def test_a_gpu_that_the_layout_does_not_mean_is_left_as_it_is(node: Node) -> None:
    await node.apply("all-7g.80gb")
    await node.apply("half")
    mine, whole = Counter({"1g.10gb": 2, "3g.40gb": 1}), Counter({"7g.80gb": 1})
    assert await node.cuts() == [mine, mine, None, None, *[whole] * 4]


async def test_an_unknown_layout_fails_with_those_that_there_are(node: Node) -> None:
    ended = await node.apply("all-1g.5gb")
    assert ended.state is LayoutState.FAILED
    assert (
        "nvidia.com/mig.config: 'all-1g.5gb' is no layout; there are all-disabled" in ended.reason
    )


async def test_one_gpu_in_use_fails_before_any_other_is_touched(node: Node) -> None:
    node.used = {f"{await node.gpu(7)}::0"}
    ended = await node.apply("all-balanced")
    assert ended.state is LayoutState.FAILED
    assert "(index 7, NVIDIA H100 80GB HBM3): is in use" in ended.reason
    assert await node.cuts() == [None] * 8


async def test_free_instances_are_cut_anew_beside_those_in_use(node: Node) -> None:
    await node.apply("all-1g.10gb")
    busy = (await node.instances(0))[0]
    node.used = {busy}
    ended = await node.apply("half")
    assert ended.state is LayoutState.SUCCESS
    assert busy in await node.instances(0)
    assert (await node.cuts())[0] == Counter({"1g.10gb": 2, "3g.40gb": 1})


async def test_what_is_to_go_is_held_back_before_it_goes_and_let_go_in_the_end(node: Node) -> None:
    await node.apply("all-1g.10gb")
    all_of_first = frozenset(await node.instances(0))
    node.held.clear()
    await node.apply("all-7g.80gb")
    assert node.held[0] == all_of_first
    assert node.held[-1] == frozenset()


async def test_a_container_that_got_an_instance_just_before_it_was_held_keeps_it(
    node: Node,
) -> None:
    await node.apply("all-1g.10gb")
    first = (await node.instances(0))[0]
    node.at_hold = lambda uuids: node.used.add(first) if uuids else None
    ended = await node.apply("all-7g.80gb")
    assert ended.state is LayoutState.FAILED
    assert "in use" in ended.reason
    assert first in await node.instances(0)
    assert node.held[-1] == frozenset()


async def test_what_failed_in_the_middle_goes_on_where_it_stopped(
    node: Node, control: Path
) -> None:
    faultswitch.write(
        control, faultswitch.with_fields(faultswitch.read(control), {"resetDue": True}, gpu="4")
    )
    ended = await node.apply("all-balanced")
    assert ended.state is LayoutState.FAILED
    assert "reset" in ended.reason
    cut = Counter({"1g.10gb": 2, "2g.20gb": 1, "3g.40gb": 1})
    assert await node.cuts() == [*[cut] * 4, *[None] * 4]
    faultswitch.write(control, faultswitch.without(faultswitch.read(control), gpu="4"))
    assert (await node.apply("all-balanced")).state is LayoutState.SUCCESS
    assert await node.cuts() == [cut] * 8


async def test_applying_what_is_already_so_touches_nothing(node: Node) -> None:
    await node.apply("all-balanced")
    before = await node.backend.inventory()
    node.held.clear()
    assert (await node.apply("all-balanced")).state is LayoutState.SUCCESS
    assert await node.backend.inventory() == before
    assert node.held == [frozenset()]
