"""Which parts are connected to which, on a simulated DGX H100; nothing of it runs or writes.

::

    Node, pods (given by the test) ──► parts ──► what the Node is to show (NodeObject._wanted)
"""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from deviceplugin import wiring
from deviceplugin.backends.simulated.backend import Simulated
from deviceplugin.backends.simulated.machine import load
from deviceplugin.cluster.incluster import InCluster
from deviceplugin.config import DevicePluginConfig, KubeletSettings, NodeConfigs
from deviceplugin.listeners import Listeners
from deviceplugin.metrics import DevicePluginMetrics
from deviceplugin.mig.reconfiguration import STATE_LABEL, LayoutProgress, LayoutState
from deviceplugin.model.signals import DeviceLost, Xid
from deviceplugin.resources.choice import LABEL
from deviceplugin.wiring import NodeBasis, NodeParts
from muster.kube import wire
from muster.kube.changes import Synced, Upserted
from muster.kube.client import KubeClient
from muster.kube.http import auth
from muster.kube.names import NODE_ALLOCATIONS
from muster.observability.metrics import new_registry

GPU = "nvidia.com/gpu"
ALLOCATIONS = '{"version":1,"generation":41,"pods":{}}'


def node(labels: dict[str, str], allocations: str = "") -> wire.Node:
    notes = {NODE_ALLOCATIONS: allocations} if allocations else {}
    return wire.Node(metadata=wire.ObjectMeta(name="n", labels=labels, annotations=notes))


@pytest.fixture
def basis(tmp_path: Path) -> NodeBasis:
    (tmp_path / "configs").mkdir()
    (tmp_path / "configs" / "shared").write_text(
        "version: v1\nsharing: {timeSlicing: {resources: [{name: nvidia.com/gpu, replicas: 2}]}}"
    )
    (tmp_path / "configs" / "whole").write_text("version: v1")  # of one file none need be chosen
    (tmp_path / "configs" / "quiet").write_text("health: {ignoredXIDs: [79]}")
    config = DevicePluginConfig(
        kubelet=KubeletSettings(root=tmp_path), node_configs=NodeConfigs(tmp_path / "configs")
    )
    metrics = DevicePluginMetrics(new_registry())
    return NodeBasis(config, Simulated(load("dgx-h100"), node="n"), "n", metrics)


@pytest.fixture
async def made(basis: NodeBasis) -> AsyncIterator[NodeParts]:
    async with KubeClient(auth.fixed("http://127.0.0.1:1")) as client:
        yield wiring.parts(basis, client)


def cluster_of(made: NodeParts) -> InCluster:
    assert made.cluster is not None
    return made.cluster


def show(made: NodeParts, found: wire.Node) -> None:
    """Bring the Node as its watch does."""
    cluster_of(made).node._node_changed([Upserted(found)])


def wanted(made: NodeParts) -> dict[str, str]:
    """Return the labels and annotations that the Node is to have."""
    says = cluster_of(made).node._wanted
    return {} if says is None else {**says.labels, **says.annotations}


async def test_nothing_is_published_before_both_the_node_and_its_devices_are_known(
    made: NodeParts,
) -> None:
    await made.plugin.look()
    assert wanted(made) == {}
    show(made, node({}))
    assert wanted(made)["nvidia.com/gpu.count"] == "8"


async def test_the_allocations_of_an_earlier_process_stay_until_the_pods_are_known(
    made: NodeParts,
) -> None:
    show(made, node({}, ALLOCATIONS))
    await made.plugin.look()
    assert wanted(made)[NODE_ALLOCATIONS] == ALLOCATIONS
    made.handshake.pods_changed([Synced("1", frozenset())])
    assert '"generation":42' in wanted(made)[NODE_ALLOCATIONS]


async def test_a_label_that_chooses_a_configuration_changes_what_is_advertised(
    made: NodeParts,
) -> None:
    await made.plugin.look()
    show(made, node({}))
    assert len(made.state.advertisement.resources[0].devices) == 8
    show(made, node({LABEL: "shared"}))
    assert len(made.state.advertisement.resources[0].devices) == 16


async def test_a_change_of_health_becomes_an_event_and_a_condition(made: NodeParts) -> None:
    show(made, node({}))
    await made.plugin.look()
    cluster = cluster_of(made)
    before = cluster.node._condition
    gpu = made.state.inventory.gpus[0].uuid
    made.plugin._signalled(DeviceLost(gpu, "gone"))
    assert cluster.node._condition != before
    [series] = cluster.recorder._waiting.values()
    assert (series.regarding.name, series.warning) == ("n", True)
    assert gpu in series.note


async def test_an_xid_that_the_chosen_configuration_ignores_changes_nothing(
    made: NodeParts,
) -> None:
    show(made, node({LABEL: "quiet"}))
    await made.plugin.look()
    before = cluster_of(made).node._condition
    gpu = made.state.inventory.gpus[0].uuid
    made.plugin._signalled(Xid(gpu, 79))
    assert cluster_of(made).node._condition == before
    show(made, node({LABEL: "whole"}))
    made.plugin._signalled(Xid(gpu, 79))
    assert cluster_of(made).node._condition != before


async def test_the_progress_of_a_layout_is_published(made: NodeParts) -> None:
    show(made, node({}))
    await made.plugin.look()
    recutting = cluster_of(made).recutting
    assert recutting is not None
    recutting.progress = LayoutProgress("all-disabled", LayoutState.PENDING)
    recutting.progress_changes.announce(recutting.progress)
    assert wanted(made)[STATE_LABEL] == "pending"


async def test_without_an_api_server_devices_are_advertised_all_the_same(basis: NodeBasis) -> None:
    made = wiring.parts(basis, None)
    await made.plugin.look()
    assert made.cluster is None
    assert not made.handshake.confirms
    assert len(made.state.advertisement.resources[0].devices) == 8


def test_listeners_are_called_in_the_order_in_which_they_were_added() -> None:
    listeners: Listeners[[int]] = Listeners()
    seen: list[str] = []
    listeners.announce(0)
    listeners.listen(lambda number: seen.append(f"first {number}"))
    listeners.listen(lambda number: seen.append(f"second {number}"))
    listeners.announce(1)
    assert seen == ["first 1", "second 1"]
