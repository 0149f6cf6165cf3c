"""What is said when: nothing too early, and again when the cloud or a file changes."""

from pathlib import Path
from typing import cast

from support.devices.gpunodes import gpu, node

from deviceplugin.cluster.nodeobject import NodeObject
from deviceplugin.cluster.position import Position
from deviceplugin.cluster.publisher import NodePublisher
from deviceplugin.publication.nodecontent import KnownDevices, PublicationSettings
from deviceplugin.publication.nodepatch import PUBLISHED
from deviceplugin.resources.advertising import advertise
from deviceplugin.resources.settings import ResourceSettings
from muster.kube import wire
from muster.kube.changes import Upserted
from muster.kube.client import KubeClient
from muster.kube.names import BLOCK, RACK

EIGHT = node(*map(gpu, range(8)))
SETTINGS = ResourceSettings()
KNOWN = KnownDevices(EIGHT, advertise(EIGHT, SETTINGS), SETTINGS)
CLOUD = "topology.k8s.aws/network-node-layer-3"


def sees(made: NodePublisher, labels: dict[str, str], ours: str = "") -> None:
    """Have the watch tell of the Node."""
    meta = wire.ObjectMeta(name="n1", labels=labels, annotations={PUBLISHED: ours})
    made.node._node_changed([Upserted(wire.Node(metadata=meta))])


def labels(made: NodePublisher) -> dict[str, str]:
    assert made.node._wanted is not None
    return dict(made.node._wanted.labels)


def publisher(file: Path | None = None) -> NodePublisher:
    """Return one whose NodeObject does not run: it keeps what it was told and writes nothing."""
    node_object = NodeObject(cast("KubeClient", None), "n1")
    made = NodePublisher(node_object, Position("n1", file), PublicationSettings())
    node_object.listen(made.node_changed)
    return made


def test_nothing_is_published_before_the_node_and_its_devices_are_known() -> None:
    made = publisher()
    made.publish(KNOWN)
    assert made.node._wanted is None
    sees(made, {})
    assert labels(made)["nvidia.com/gpu.count"] == "8"


def test_a_label_that_the_cloud_writes_late_becomes_a_level() -> None:
    made = publisher()
    sees(made, {})
    made.publish(KNOWN)
    assert RACK not in labels(made)
    sees(made, {CLOUD: "nn-3"})
    assert labels(made)[RACK] == "nn-3"


def test_what_was_written_itself_is_not_taken_for_somebody_elses() -> None:
    made = publisher()
    sees(made, {CLOUD: "nn-3"})
    made.publish(KNOWN)
    said = made.node._wanted
    sees(made, {CLOUD: "nn-3", RACK: "nn-3"}, ours=RACK)
    assert made.node._wanted is said
    made.publish(KNOWN)
    assert labels(made)[RACK] == "nn-3"


def test_a_file_is_looked_at_again(tmp_path: Path) -> None:
    file = tmp_path / "topology.yaml"
    file.write_text("groups: [{nodes: [n1], levels: {muster.dev/block: b1}}]")
    made = publisher(file)
    sees(made, {})
    made.publish(KNOWN)
    assert labels(made)[BLOCK] == "b1"
    file.write_text("groups: [{nodes: [n1], levels: {muster.dev/block: b2}}]")
    made._look()
    assert labels(made)[BLOCK] == "b2"
