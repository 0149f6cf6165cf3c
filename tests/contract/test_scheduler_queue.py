"""What wakes a pod that kube-scheduler has put aside (research: extender_peers.md 1.9)."""

import asyncio

import pytest
from support.clusters.cell import Cell
from support.pods.wire import pinned

from loadtest.testbed.client.api import STRATEGIC_PATCH

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_a_rejected_pod_sleeps_when_only_a_sibling_is_created(cell: Cell) -> None:
    """Gang pitfall 1 of research/extender_peers.md 1.9."""
    waiting = {"NodeNames": [], "FailedAndUnresolvableNodes": {}, "Error": ""}
    for name in ("p", "sibling"):
        cell.extender.on(cell.key(name), "filter", lambda _: waiting)
    await cell.create("p")
    await cell.condition("p", "Unschedulable")
    await asyncio.sleep(3)  # its own condition's update is one more try; then it sleeps
    before = len(cell.seen("p", "filter"))
    await cell.create("sibling")
    await cell.condition("sibling", "Unschedulable")
    await asyncio.sleep(2)
    assert len(cell.seen("p", "filter")) == before


async def test_a_patch_to_a_rejected_pod_wakes_it(cell: Cell) -> None:
    waiting = {"NodeNames": [], "FailedAndUnresolvableNodes": {}, "Error": ""}
    cell.extender.on(cell.key("p"), "filter", lambda _: waiting)
    await cell.create("p")
    await cell.condition("p", "Unschedulable")
    cell.let_bind("p")
    cell.extender.on(cell.key("p"), "filter", lambda body: {"NodeNames": body["NodeNames"][:1]})
    await cell.api.patch(f"{cell.pods}/p", {"metadata": {"annotations": {"wake": "1"}}})
    await cell.bound("p")


async def test_a_pod_that_lacks_room_wakes_when_another_one_goes(cell: Cell) -> None:
    cell.let_bind("first", "second")
    await cell.create("first", gpus=4, affinity=pinned(cell.nodes[0]))
    await cell.bound("first")
    await cell.create("second", gpus=4, affinity=pinned(cell.nodes[0]))
    await cell.condition("second", "Unschedulable")
    await cell.api.delete(f"{cell.pods}/first")
    assert await cell.bound("second") == cell.nodes[0]


async def test_a_pod_that_lacks_room_wakes_when_another_one_succeeds(cell: Cell) -> None:
    cell.let_bind("first", "second")
    await cell.create("first", gpus=4, affinity=pinned(cell.nodes[0]))
    await cell.bound("first")
    await cell.create("second", gpus=4, affinity=pinned(cell.nodes[0]))
    await cell.condition("second", "Unschedulable")
    done = {"status": {"phase": "Succeeded"}}
    await cell.api.patch(f"{cell.pods}/first/status", done, kind=STRATEGIC_PATCH)
    assert await cell.bound("second") == cell.nodes[0]


async def test_a_pinned_pod_wakes_when_its_node_appears(cell: Cell) -> None:
    cell.let_bind("p")
    late = f"{cell.namespace}-late"
    await cell.create("p", affinity=pinned(late))
    await cell.condition("p", "Unschedulable")
    await cell.add_node(late)
    cell.nodes.append(late)
    assert await cell.bound("p") == late
