"""What a pod is told about its fabric: field, value, what is allowed, the way out."""

import msgspec
from support.injections.injecting import GPU, JSON, facts, gpu_pod

from muster.injection.checks.fabricproblems import problems
from muster.injection.checks.problem import Severity
from muster.injection.nodegroups import NodeGroup, NodeGroups
from muster.injection.podview import PodView
from muster.injection.subject import Facts, Gang, Subject


def told(pod: JSON, known: Facts, *, in_gang: bool = True) -> list[tuple[str, str]]:
    """Severity and text of what is told."""
    view = msgspec.convert(pod, PodView)
    subject = Subject.of(view, "a", known, Gang("muster", 2) if in_gang else None)
    return [(str(p.severity), str(p)) for p in problems(subject)]


def annotated(pod: JSON, **notes: str) -> JSON:
    pod["metadata"]["annotations"] = {
        f"muster.dev/{k.replace('_', '-')}": v for k, v in notes.items()
    }
    return pod


def test_a_pod_that_gets_its_fabric_is_told_nothing() -> None:
    assert told(gpu_pod(), facts({"profile": "coreweave-ib"})) == []


def test_a_fabric_that_nobody_knows_is_a_contradiction() -> None:
    pod = annotated(gpu_pod(), fabric="infiniband")
    ((severity, text),) = told(pod, facts({"profile": "coreweave-ib"}, {"profile": "plain-tcp"}))
    assert severity == Severity.CONTRADICTION
    assert text.startswith("metadata.annotations[muster.dev/fabric]: 'infiniband'; allowed: ")
    assert text.endswith("coreweave-ib, plain-tcp, none; name one of these, or take it off")


def test_a_pod_that_wants_none_is_left_in_peace() -> None:
    assert told(annotated(gpu_pod(), fabric="none"), facts({"profile": "gke-tcpxo"})) == []


def test_a_pod_too_small_for_the_only_fabric_loses_it_and_hears_why() -> None:
    ((severity, text),) = told(gpu_pod(4), facts({"profile": "gke-tcpxo"}))
    assert severity == Severity.LOST
    assert "'4 accelerators'; allowed: 8 or more in one container" in text


def test_naming_a_fabric_that_the_pod_is_too_small_for_is_a_contradiction() -> None:
    pod = annotated(gpu_pod(4), fabric="gke-tcpxo")
    ((severity, _),) = told(pod, facts({"profile": "gke-tcpxo"}))
    assert severity == Severity.CONTRADICTION


def test_a_pod_alone_loses_nothing() -> None:
    assert told(gpu_pod(4), facts({"profile": "gke-tcpxo"}), in_gang=False) == []


def test_shared_gpus_beside_rdma_are_told_as_the_vendor_has_it() -> None:
    limits = {GPU: "1", "vke.volcengine.com/mgpu-core": "30"}
    pod = gpu_pod(container={"resources": {"limits": limits}})
    ((severity, text),) = told(pod, facts({"profile": "volcengine-rdma"}))
    assert severity == Severity.LOST
    assert "'vke.volcengine.com/mgpu-core'; allowed: not beside fabric volcengine-rdma" in text
    ((severity, _),) = told(annotated(pod, fabric="volcengine-rdma"), facts())
    assert severity == Severity.CONTRADICTION


def test_an_option_that_the_fabric_does_not_have_is_hinted_at() -> None:
    pod = annotated(gpu_pod(), fabric_options="sharp, turbo")
    ((severity, text),) = told(pod, facts({"profile": "coreweave-ib"}))
    assert severity == Severity.HINT
    assert "'turbo'; allowed: debug, nvl, sharp" in text


def test_a_claim_without_a_template_is_told_with_the_annotation_to_set() -> None:
    ((severity, text),) = told(gpu_pod(4), facts({"profile": "gke-a4x"}))
    assert severity == Severity.LOST
    assert "metadata.annotations[muster.dev/compute-domain-template]" in text
    assert (
        told(annotated(gpu_pod(4), compute_domain_template="t"), facts({"profile": "gke-a4x"}))
        == []
    )


def test_naming_a_fabric_without_live_nodes_is_told() -> None:
    nodes = NodeGroups((NodeGroup({}, {GPU: 8}),), known=True)
    pod = annotated(gpu_pod(), fabric="coreweave-ib")
    ((severity, text),) = told(pod, facts({"profile": "coreweave-ib"}, nodes=nodes))
    assert severity == Severity.LOST
    assert "no live node" in text


def test_nodes_of_several_kinds_are_told_where_settings_are_of_one_kind_each() -> None:
    ((severity, text),) = told(gpu_pod(), facts({"profile": "oci-roce-hostnet"}))
    assert severity == Severity.HINT
    assert "BM.GPU.H100.8" in text


def test_live_nodes_of_one_kind_need_no_naming() -> None:
    shape = "node.kubernetes.io/instance-type"
    nodes = NodeGroups((NodeGroup({shape: "BM.GPU.H100.8"}, {GPU: 8}),), known=True)
    assert told(gpu_pod(), facts({"profile": "oci-roce-hostnet"}, nodes=nodes)) == []


def test_a_line_fits_into_an_admission_warning() -> None:
    """256 characters, k8s.io/api admission/v1: but for the list of every kind of node."""
    clusters = (
        (gpu_pod(4), "gke-tcpxo"),
        (gpu_pod(4), "gke-a4x"),
        (annotated(gpu_pod(), fabric="x"), "plain-tcp"),
    )
    for pod, profile in clusters:
        for _, text in told(pod, facts({"profile": profile})):
            assert len(text) <= 256
