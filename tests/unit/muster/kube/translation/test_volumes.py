import json
from typing import Any

import msgspec
import pytest

from muster.cluster.specs.podconstraints import NodeTerm, Operator, Requirement
from muster.kube.translation.translate import Translator
from muster.kube.translation.volumes import VolumeIndex
from muster.kube.wire import Pod
from muster.kube.wirestorage import CsiNode, PersistentVolume, PersistentVolumeClaim

ZONE = "topology.kubernetes.io/zone"
BETA_ZONE = "failure-domain.beta.kubernetes.io/zone"


def pod(*volumes: dict[str, Any]) -> Pod:
    body = {
        "metadata": {"name": "p", "namespace": "team", "uid": "u"},
        "spec": {"volumes": [{"name": "v", **volume} for volume in volumes]},
    }
    return msgspec.json.decode(json.dumps(body), type=Pod)


def uses(claim: str) -> dict[str, Any]:
    return {"persistentVolumeClaim": {"claimName": claim}}


def claim(name: str, volume: str = "", *, bound: bool = True, **spec: Any) -> PersistentVolumeClaim:
    done = {"pv.kubernetes.io/bind-completed": "yes"} if bound else {}
    body = {
        "metadata": {"name": name, "namespace": "team", "annotations": done},
        "spec": {"volumeName": volume, **spec},
    }
    return msgspec.convert(body, PersistentVolumeClaim)


def volume(name: str, labels: dict[str, str] | None = None, **spec: Any) -> PersistentVolume:
    meta = {"name": name, "labels": labels or {}}
    return msgspec.convert({"metadata": meta, "spec": spec}, PersistentVolume)


def on(*nodes: str) -> dict[str, Any]:
    expression = {"key": "kubernetes.io/hostname", "operator": "In", "values": list(nodes)}
    return {"required": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}}


@pytest.fixture
def index() -> VolumeIndex:
    index = VolumeIndex()
    index.claim_upserted(claim("local", "pv-1"))
    index.volume_upserted(volume("pv-1", nodeAffinity=on("n1")))
    return index


def test_a_bound_volumes_node_affinity_becomes_terms(index: VolumeIndex) -> None:
    hostname = Requirement("kubernetes.io/hostname", Operator.IN, ("n1",))
    event = Translator().pod_event(pod(uses("local"), {"emptyDir": {}}), volumes=index)
    assert event.pod_class.volume_affinity == ((NodeTerm(labels=(hostname,)),),)
    assert event.pod_class.unmodelled == ()


def test_every_bound_volume_has_to_hold(index: VolumeIndex) -> None:
    index.claim_upserted(claim("other", "pv-2"))
    index.volume_upserted(volume("pv-2", nodeAffinity=on("n1", "n2")))
    assert len(index.constraints(pod(uses("local"), uses("other"))).affinity) == 2
    assert len(index.constraints(pod(uses("local"), uses("local"))).affinity) == 1


@pytest.mark.parametrize(
    ("volumes", "words"),
    [
        ([uses("none")], ("volume claim that does not exist",)),
        ([uses("waiting")], ("volume claim that is not bound yet",)),
        ([uses("half")], ("volume claim that is not bound yet",)),
        ([uses("lost")], ("volume claim that is not bound yet",)),
        ([uses("alone")], ("ReadWriteOncePod volume claim",)),
        ([uses("limited")], ("CSI driver with an attach limit",)),
        ([{"ephemeral": {"volumeClaimTemplate": {}}}], ("generic ephemeral volume",)),
        ([{"iscsi": {}}, {"rbd": {}}], ("disk that only one pod may write to",)),
        ([{"configMap": {}}, {"emptyDir": {}}], ()),
    ],
)
def test_what_depends_on_more_than_the_objects_is_named(
    index: VolumeIndex, volumes: list[dict[str, Any]], words: tuple[str, ...]
) -> None:
    index.claim_upserted(claim("waiting", bound=False))
    index.claim_upserted(claim("half", "pv-1", bound=False))
    index.claim_upserted(claim("lost", "pv-gone"))
    index.claim_upserted(claim("alone", "pv-1", accessModes=["ReadWriteOncePod"]))
    index.claim_upserted(claim("limited", "pv-csi"))
    index.volume_upserted(volume("pv-csi", csi={"driver": "d"}))
    index.csi_node_upserted(csi_node("n1", 20))
    assert index.constraints(pod(*volumes)).unmodelled == words


def csi_node(name: str, count: int | None) -> CsiNode:
    limit = {} if count is None else {"allocatable": {"count": count}}
    body = {"metadata": {"name": name}, "spec": {"drivers": [{"name": "d", **limit}]}}
    return msgspec.convert(body, CsiNode)


def test_a_driver_is_limited_while_some_node_limits_it(index: VolumeIndex) -> None:
    index.claim_upserted(claim("csi", "pv-csi"))
    index.volume_upserted(volume("pv-csi", csi={"driver": "d"}))
    wants = pod(uses("csi"))
    index.csi_node_upserted(csi_node("n1", None))
    assert index.constraints(wants).unmodelled == ()
    index.csi_node_upserted(csi_node("n1", 20))
    index.csi_node_upserted(csi_node("n2", 20))
    index.csi_node_upserted(csi_node("n1", None))
    assert index.constraints(wants).unmodelled != ()
    index.csi_node_gone("n2")
    index.csi_node_gone("n2")
    assert index.constraints(wants).unmodelled == ()


def test_a_binding_that_completes_changes_the_pods_class(index: VolumeIndex) -> None:
    translator = Translator()
    index.claim_upserted(claim("later", bound=False))
    before = translator.pod_event(pod(uses("later")), volumes=index).pod_class
    index.claim_upserted(claim("later", "pv-1"))
    after = translator.pod_event(pod(uses("later")), volumes=index).pod_class
    assert (before.unmodelled, after.unmodelled) == (("volume claim that is not bound yet",), ())
    index.claim_gone("team", "later")
    gone = translator.pod_event(pod(uses("later")), volumes=index).pod_class
    assert gone.unmodelled == ("volume claim that does not exist",)


def holds(terms: tuple[NodeTerm, ...], labels: dict[str, str]) -> bool:
    def requirement(r: Requirement) -> bool:
        return (
            r.key not in labels
            if r.operator is Operator.DOES_NOT_EXIST
            else labels.get(r.key) in r.values
        )

    return any(all(map(requirement, term.labels)) for term in terms)


@pytest.mark.parametrize(
    ("volume_labels", "node_labels", "fits"),
    [
        ({ZONE: "a"}, {ZONE: "a"}, True),
        ({ZONE: "a"}, {ZONE: "b"}, False),
        ({ZONE: "a__b"}, {ZONE: "b"}, True),
        # A cluster without zones takes every volume; a node with only a region does not.
        ({ZONE: "a"}, {}, True),
        ({ZONE: "a"}, {"topology.kubernetes.io/region": "r"}, False),
        # A beta label is looked up under its present name where the node lacks it.
        ({BETA_ZONE: "a"}, {ZONE: "a"}, True),
        ({BETA_ZONE: "a"}, {ZONE: "b"}, False),
        ({BETA_ZONE: "a"}, {BETA_ZONE: "b", ZONE: "a"}, False),
        ({ZONE: "a"}, {BETA_ZONE: "a"}, False),
        # Zone and region both have to fit.
        ({ZONE: "a", "topology.kubernetes.io/region": "r"}, {ZONE: "a"}, False),
        # An unreadable label is ignored, as upstream does.
        ({ZONE: "a__"}, {ZONE: "b"}, True),
    ],
)
def test_zones_of_volumes_are_matched_as_upstream_does(
    volume_labels: dict[str, str], node_labels: dict[str, str], *, fits: bool
) -> None:
    index = VolumeIndex()
    index.claim_upserted(claim("c", "pv"))
    index.volume_upserted(volume("pv", volume_labels))
    affinity = index.constraints(pod(uses("c"))).affinity
    assert all(holds(terms, node_labels) for terms in affinity) == fits


def test_a_node_without_drivers_is_written_with_null_and_has_no_limit() -> None:
    """As a kubelet of 1.36 creates it, before any driver registers."""
    body = b'{"metadata": {"name": "n1"}, "spec": {"drivers": null}}'
    VolumeIndex().csi_node_upserted(msgspec.json.decode(body, type=CsiNode))
