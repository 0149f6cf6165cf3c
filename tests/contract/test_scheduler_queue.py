"""What wakes a pod that kube-scheduler has put aside (research: extender_peers.md 1.9)."""

import asyncio

import pytest
from support.apiservers.fake_extender import Call
from support.clusters.cell import Cell
from support.pods.wire import pinned

from loadtest.testbed.client.api import STRATEGIC_PATCH

pytestmark = pytest.mark.asyncio(loop_scope="session")

WELL_WITHIN_S = 60.0  # for what takes moments: a failing test, not a hanging one


async def rejected(cell: Cell, name: str) -> None:
    """Create a pod that the extender rejects, and wait until it has been rejected."""
    waiting = {"NodeNames": [], "FailedAndUnresolvableNodes": {}, "Error": ""}
    cell.extender.on(cell.key(name), "filter", lambda _: waiting)
    await cell.create(name)
    await cell.condition(name, "Unschedulable")


async def all_handled_before(cell: Cell, witness: str, mark: str) -> None:
    """Wait until kube-scheduler has tried every pod that was woken before now.

    The witness is a rejected pod, created after the pods in question. A change of it wakes it.
    Pods are tried in the order in which they were woken and in which their backoff ends, so the
    witness comes last.
    """
    await cell.api.patch(f"{cell.pods}/{witness}", {"metadata": {"annotations": {"mark": mark}}})

    def is_marked(call: Call) -> bool:
        return call.body["Pod"]["metadata"].get("annotations", {}).get("mark") == mark

    async with asyncio.timeout(WELL_WITHIN_S), cell.extender.changed:
        await cell.extender.changed.wait_for(lambda: any(map(is_marked, cell.seen(witness))))


async def test_a_rejected_pod_sleeps_when_only_a_sibling_is_created(cell: Cell) -> None:
    """Gang pitfall 1 of research/extender_peers.md 1.9."""
    for name in ("p", "witness"):
        await rejected(cell, name)
    await all_handled_before(cell, "witness", "p sleeps")  # its own condition is one more try
    before = len(cell.seen("p", "filter"))
    await rejected(cell, "sibling")
    await all_handled_before(cell, "witness", "the sibling sleeps")
    assert len(cell.seen("p", "filter")) == before


async def test_a_patch_to_a_rejected_pod_wakes_it(cell: Cell) -> None:
    await rejected(cell, "p")
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
