"""Whole devices of one pod are on as few NUMA nodes as there can be, whatever is used by others."""

from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from muster.cluster.devices.choice import choose
from muster.cluster.devices.onenode import (
    WIDTH,
    DeviceSlot,
    Layout,
    needs_of,
)
from muster.cluster.specs.deviceshape import DeviceShape
from muster.cluster.specs.podconstraints import PodClass

GPU = "nvidia.com/gpu"


@st.composite
def nodes(draw: st.DrawFn) -> tuple[Layout, list[int]]:
    """Return devices on one to four NUMA nodes, some of them used or unhealthy, and their uses."""
    numas = draw(st.lists(st.integers(-1, 3), min_size=1, max_size=16).map(sorted))
    slots, uses = [], []
    for numa in numas:
        healthy = draw(st.integers(0, 5)) > 0
        slots.append(DeviceSlot(DeviceShape(GPU, family="nvidia", numa=numa), healthy))
        uses += [1000 if draw(st.integers(0, 3)) == 0 else 0, 0, 0, 0]
    return tuple(slots), uses


@given(nodes(), st.integers(1, 10))
def test_whole_devices_are_on_the_fewest_numa_nodes(
    node: tuple[Layout, list[int]], wanted: int
) -> None:
    layout, uses = node
    free = [d for d, slot in enumerate(layout) if slot.healthy and not uses[d * WIDTH]]
    rooms = {
        numa: [d for d in free if layout[d].shape.numa == numa]
        for numa in {layout[d].shape.numa for d in free}
    }
    needs = needs_of(layout, PodClass(requests=((GPU, wanted),)))
    assert needs is not None
    found = choose(layout, uses, needs)
    if len(free) < wanted:
        assert found is None
        return
    assert found is not None
    chosen = {seat.device for seat in found}
    assert len(chosen) == wanted
    assert chosen <= set(free)
    on = {layout[d].shape.numa for d in chosen}
    assert len(on) == _fewest(list(map(len, rooms.values())), wanted)
    if len(on) == 1:
        enough = [len(devices) for devices in rooms.values() if len(devices) >= wanted]
        assert len(rooms[on.pop()]) == min(enough)


def _fewest(rooms: list[int], wanted: int) -> int:
    """Return the size of the smallest set of NUMA nodes with enough room, by trying all."""
    for size in range(1, len(rooms) + 1):
        if any(sum(some) >= wanted for some in combinations(rooms, size)):
            return size
    raise AssertionError(f"no room for {wanted} in {rooms}")
