import json
import uuid
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster.constraints import (
    HostPort,
    LabelSelector,
    Operator,
    PodClass,
    Requirement,
    Taint,
    TaintEffect,
    Toleration,
)
from cluster.events import DeviceSpec, PlanNote, PodUpserted
from kube.plan import encode_plan
from kube.release import affinity_body
from kube.translate import Translator, node_event, pod_event, pod_uid, read_node
from kube.wire import Node, Pod

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def pod(**spec: Any) -> Pod:
    labels = spec.pop("labels", {})
    meta = spec.pop("metadata", {})
    status = spec.pop("status", {})
    containers = [{"name": "main", "resources": {"requests": {"cpu": "1"}}}]
    body = {
        "metadata": {"name": "p", "namespace": "team", "uid": "u", "labels": labels, **meta},
        "spec": {"containers": containers, **spec},
        "status": status,
    }
    return msgspec.json.decode(json.dumps(body), type=Pod)


def of(found: Pod, **options: Any) -> PodClass:
    return pod_event(found, **options).pod_class


# -- classes -------------------------------------------------------------------------------------


def member(index: int, *, node: str = "", released_to: str = "") -> Pod:
    """A pod of an indexed Job: differs from its siblings wherever the API server makes it so."""
    token = f"kube-api-access-{uuid.uuid4().hex[:5]}"
    labels = {"app": "llama", "batch.kubernetes.io/job-completion-index": str(index)}
    made = pod(
        labels=labels,
        metadata={"name": f"llama-{index}", "uid": str(uuid.uuid4())},
        volumes=[{"name": token, "projected": {"sources": []}}],
        tolerations=[{"key": "gpu", "operator": "Exists", "effect": "NoSchedule"}],
        nodeName=node,
    )
    if not released_to:
        return made
    note = PlanNote("plan", released_to, ("spare",), rank=index)
    patch = json.loads(affinity_body(made.metadata.uid, note))
    body = msgspec.to_builtins(made)
    body["spec"]["affinity"] = patch["spec"]["affinity"]
    body["metadata"]["annotations"] = {"muster.dev/plan": encode_plan(note)}
    return msgspec.convert(body, Pod)


def test_a_gang_of_256_is_one_class_and_one_label_set_in_every_phase() -> None:
    translator = Translator()
    gated = [member(i) for i in range(256)]
    released = [member(i, released_to=f"n{i}") for i in range(256)]
    bound = [member(i, released_to=f"n{i}", node=f"n{i}") for i in range(256)]
    events = [translator.pod_event(p, managed=True) for p in gated + released + bound]
    assert len({id(event.pod_class) for event in events}) == 1
    assert len({id(event.labels) for event in events}) == 1
    assert events[300].plan == PlanNote("plan", "n44", ("spare",), rank=44)


def test_daemon_pods_that_are_bound_share_a_class() -> None:
    translator = Translator()

    def daemon(node: str) -> PodUpserted:
        term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}
        affinity = {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [term]}}}
        return translator.pod_event(pod(affinity=affinity, nodeName=node))

    assert daemon("a").pod_class is daemon("b").pod_class


def test_the_order_of_writing_makes_no_difference() -> None:
    def written(order: int) -> PodClass:
        def o(items: list[Any]) -> list[Any]:
            return items[::order]

        expressions = [
            {"key": "a", "operator": "In", "values": o(["1", "2"])},
            {"key": "b", "operator": "Exists"},
        ]
        terms = [{"matchExpressions": o(expressions)}, {"matchFields": []}]
        selector = {"matchLabels": {"x": "1"}, "matchExpressions": o(expressions)}
        against = [
            {"topologyKey": key, "labelSelector": selector, "namespaces": o(["n", "m"])}
            for key in o(["rack", "zone"])
        ]
        spread = [
            {"maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": "DoNotSchedule"}
            for key in o(["rack", "zone"])
        ]
        return of(
            pod(
                nodeSelector=dict(o([("k", "1"), ("l", "2")])),
                affinity={
                    "nodeAffinity": {REQUIRED: {"nodeSelectorTerms": o(terms)}},
                    "podAntiAffinity": {REQUIRED: against},
                    "podAffinity": {REQUIRED: against},
                },
                tolerations=o([{"key": "a", "value": "1"}, {"key": "b", "operator": "Exists"}]),
                topologySpreadConstraints=spread,
            )
        )

    assert written(1) == written(-1)


def test_what_the_class_is_made_of_tells_pods_apart() -> None:
    variants: list[dict[str, Any]] = [
        {},
        {"nodeSelector": {"a": "b"}},
        {"tolerations": [{"operator": "Exists"}]},
        {"overhead": {"cpu": "1m"}},
        {"resources": {"requests": {"cpu": "2"}}},
        {"resourceClaims": [{"name": "c"}]},
        {"initContainers": [{"name": "i", "resources": {"requests": {"cpu": "3"}}}]},
        {"containers": [{"name": "m", "ports": [{"containerPort": 1, "hostPort": 80}]}]},
    ]
    translator = Translator()
    classes = {translator.pod_event(pod(**v)).pod_class for v in variants}
    assert len(classes) == len(variants)


def test_host_ports_count_for_containers_and_sidecars_only() -> None:
    def port(number: int, **more: Any) -> list[dict[str, Any]]:
        return [{"containerPort": number, "hostPort": number, **more}]

    found = of(
        pod(
            containers=[
                {"name": "a", "ports": port(80, hostIP="10.0.0.1", protocol="UDP")},
                {"name": "b", "ports": [{"containerPort": 8080}]},
            ],
            initContainers=[
                {"name": "c", "ports": port(81)},
                {"name": "d", "ports": port(82), "restartPolicy": "Always"},
            ],
        )
    )
    assert found.host_ports == (HostPort("10.0.0.1", "UDP", 80), HostPort("", "TCP", 82))


def test_tolerations_are_read_with_their_defaults() -> None:
    found = of(
        pod(
            tolerations=[
                {"operator": "Exists"},
                {"key": "a", "value": "1", "effect": "NoExecute", "tolerationSeconds": 300},
                {"key": "b", "operator": "Equal", "value": "2"},
            ]
        )
    )
    assert found.tolerations == (
        Toleration("", exists=True),
        Toleration("a", exists=False, value="1", effect=TaintEffect.NO_EXECUTE),
        Toleration("b", exists=False, value="2"),
    )
    assert found.unmodelled == ()


def test_operators_of_later_versions_are_named_and_not_guessed() -> None:
    numeric = of(pod(tolerations=[{"key": "a", "operator": "Gt", "value": "1"}]))
    assert numeric.unmodelled == ("constraint with an unknown operator",)
    assert numeric.tolerations == ()
    term = {"matchExpressions": [{"key": "a", "operator": "Near", "values": ["1"]}]}
    affinity = {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [term]}}}
    assert of(pod(affinity=affinity)).unmodelled == ("constraint with an unknown operator",)


def test_only_hard_spread_constraints_are_kept_with_upstreams_defaults() -> None:
    base = {"maxSkew": 2, "topologyKey": "rack", "labelSelector": {"matchLabels": {"a": "b"}}}
    found = of(
        pod(
            topologySpreadConstraints=[
                {**base, "whenUnsatisfiable": "DoNotSchedule"},
                {**base, "whenUnsatisfiable": "ScheduleAnyway", "topologyKey": "zone"},
                {
                    **base,
                    "topologyKey": "block",
                    "whenUnsatisfiable": "DoNotSchedule",
                    "minDomains": 3,
                    "nodeAffinityPolicy": "Ignore",
                    "nodeTaintsPolicy": "Honor",
                },
            ]
        )
    )
    block, rack = sorted(found.spread, key=lambda one: one.topology_key)
    assert (rack.max_skew, rack.min_domains, rack.namespace) == (2, 1, "team")
    assert (rack.honor_node_affinity, rack.honor_node_taints) == (True, False)
    assert rack.selector == LabelSelector((Requirement("a", Operator.IN, ("b",)),))
    assert (block.min_domains, block.honor_node_affinity, block.honor_node_taints) == (
        3,
        False,
        True,
    )


def test_match_label_keys_are_folded_into_the_selector_once() -> None:
    def folded(selector: dict[str, Any]) -> LabelSelector | None:
        constraint = {
            "maxSkew": 1,
            "topologyKey": "rack",
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": selector,
            "matchLabelKeys": ["hash", "absent"],
        }
        found = of(pod(labels={"hash": "7"}, topologySpreadConstraints=[constraint]))
        return found.spread[0].selector

    expected = LabelSelector((Requirement("hash", Operator.IN, ("7",)),))
    assert folded({}) == expected
    stored = {"matchExpressions": [{"key": "hash", "operator": "In", "values": ["7"]}]}
    assert folded(stored) == expected


def test_affinity_terms_are_resolved_to_namespaces() -> None:
    terms = [
        {"topologyKey": "a", "labelSelector": {}, "mismatchLabelKeys": ["job"]},
        {"topologyKey": "b", "namespaces": ["x"]},
        {"topologyKey": "c", "namespaceSelector": {}},
    ]
    found = of(pod(labels={"job": "j"}, affinity={"podAffinity": {REQUIRED: terms}}))
    a, b, c = found.pod_affinity
    assert a.selector == LabelSelector((Requirement("job", Operator.NOT_IN, ("j",)),))
    assert (a.namespaces, a.namespace_selector) == ({"team"}, None)
    assert (b.selector, b.namespaces, b.namespace_selector) == (None, {"x"}, None)
    assert (c.namespaces, c.namespace_selector) == (frozenset(), LabelSelector())


def test_a_selector_on_a_label_that_is_not_kept_is_unmodelled() -> None:
    key = "statefulset.kubernetes.io/pod-name"
    term = {"topologyKey": "rack", "labelSelector": {"matchLabels": {key: "web-0"}}}
    found = of(pod(affinity={"podAntiAffinity": {REQUIRED: [term]}}))
    assert found.unmodelled == ("selector on a label that differs for every pod",)


def test_quantities_that_cannot_be_read_make_the_pod_unmodelled_not_an_error() -> None:
    found = of(pod(containers=[{"name": "m", "resources": {"requests": {"cpu": "many"}}}]))
    assert found.requests == (("pods", 1),)
    assert found.unmodelled == ("resource quantity that cannot be read",)


# -- events --------------------------------------------------------------------------------------


def test_a_pods_event_says_everything_about_it() -> None:
    source = pod(
        labels={"a": "b", "apps.kubernetes.io/pod-index": "4"},
        metadata={
            "uid": "254ec386-36c8-4d44-8ac9-60e25c9162de",
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "deletionTimestamp": "2026-01-01T00:05:00Z",
            "ownerReferences": [{"kind": "Job", "name": "j", "uid": "x", "controller": True}],
            "annotations": {"muster.dev/plan": "not ours"},
        },
        nodeName="n1",
        schedulingGates=[],
        priority=7,
        status={
            "phase": "Failed",
            "startTime": "2026-01-01T00:00:10Z",
            "nominatedNodeName": "n2",
        },
    )
    event = pod_event(source, managed=True, rank=3, role="worker", queue="q")
    assert event.uid == bytes.fromhex("254ec38636c84d448ac960e25c9162de")
    assert event.labels.labels == (("a", "b"),)
    assert (event.node, event.nominated, event.priority) == ("n1", "n2", 7)
    assert (event.created, event.started) == (1767225600.0, 1767225610.0)
    assert (event.finished, event.succeeded, event.terminating) == (True, False, True)
    assert (event.owned, event.managed, event.plan) == (True, True, None)
    assert (event.rank, event.role, event.queue, event.preemptible) == (3, "worker", "q", True)


def test_a_pending_pod_has_no_node_and_names_its_gates() -> None:
    event = pod_event(pod(schedulingGates=[{"name": "a/b"}, {"name": "muster.dev/plan"}]))
    assert (event.node, event.nominated, event.started) == (None, None, 0.0)
    assert event.gates == {"a/b", "muster.dev/plan"}


@pytest.mark.parametrize(
    "text",
    [
        "254EC386-36C8-4D44-8AC9-60E25C9162DE",
        "254ec38636c84d448ac960e25c9162de",
        "254ec386-36c8-4d44-8ac960-e25c9162de",
        "254ec386-36c8-4d44-8ac9-60e25c9162d ",
        "mirror-pod-hash",
        "",
    ],
)
def test_only_a_canonical_uuid_is_its_own_bytes(text: str) -> None:
    plain = pod_uid("254ec386-36c8-4d44-8ac9-60e25c9162de")
    assert len(pod_uid(text)) == 16
    assert pod_uid(text) != plain


@given(st.uuids(), st.uuids())
def test_different_uids_have_different_bytes(one: uuid.UUID, other: uuid.UUID) -> None:
    assert pod_uid(str(one)) == one.bytes
    assert (pod_uid(str(one)) == pod_uid(str(other))) == (one == other)


# -- nodes ---------------------------------------------------------------------------------------


def node(**parts: Any) -> Node:
    meta = {"name": "n1", "labels": {"rack": "r1"}, "annotations": parts.pop("annotations", {})}
    body = {"metadata": meta, "spec": parts.pop("spec", {}), "status": parts}
    return msgspec.json.decode(json.dumps(body), type=Node)


def test_a_nodes_event_is_in_the_models_units() -> None:
    event = node_event(
        node(
            allocatable={"cpu": "95500m", "memory": "1Ti", "pods": "110", "nvidia.com/gpu": "8"},
            conditions=[{"type": "Ready", "status": "Unknown"}],
            spec={
                "unschedulable": True,
                "taints": [{"key": "gpu", "value": "x", "effect": "NoSchedule"}],
            },
        )
    )
    assert event.allocatable == {
        "cpu": 95500,
        "memory": 1 << 40,
        "pods": 110,
        "nvidia.com/gpu": 8,
    }
    assert (event.unschedulable, event.ready) == (True, False)
    assert event.taints == (Taint("gpu", "x", TaintEffect.NO_SCHEDULE),)
    assert event.labels == {"rack": "r1"}


def test_a_node_without_conditions_counts_as_ready() -> None:
    assert node_event(node()).ready


def test_unreadable_parts_of_a_node_are_reported_and_the_rest_counts() -> None:
    broken = node(
        allocatable={"cpu": "4", "example.com/npu": "lots"},
        spec={"taints": [{"key": "a", "effect": "NoBreakfast"}]},
        annotations={"muster.dev/node-topology": '{"devices": 5}'},
    )
    event, problems = read_node(broken)
    assert event.allocatable == {"cpu": 4000}
    assert (event.taints, event.devices) == ((), ())
    assert [problem.split(":")[1].strip() for problem in problems] == [
        "status.allocatable",
        "spec.taints",
        "annotation muster.dev/node-topology",
    ]
    assert "example.com/npu: quantity 'lots'" in problems[0]


def test_devices_come_from_the_annotation() -> None:
    device = {
        "name": "GPU-0",
        "resource": "nvidia.com/gpu",
        "numa": 1,
        "parent": "pci-3",
        "healthy": False,
        "counters": {"devices": 1},
        "from a later version": {},
    }
    event, problems = read_node(
        node(annotations={"muster.dev/node-topology": json.dumps({"devices": [device]})})
    )
    assert problems == ()
    assert event.devices == (
        DeviceSpec(
            "GPU-0",
            "nvidia.com/gpu",
            numa=1,
            parent="pci-3",
            healthy=False,
            counters={"devices": 1},
        ),
    )


@pytest.mark.parametrize("text", ["", "[", "[]", "null", "[" * 100_000, '{"devices":[{}]}'])
def test_a_broken_topology_annotation_is_never_fatal(text: str) -> None:
    event, problems = read_node(node(annotations={"muster.dev/node-topology": text}))
    assert event.devices == ()
    assert len(problems) == 1


def test_a_device_listed_twice_is_a_contradiction() -> None:
    twice = {"devices": [{"name": "g", "resource": "r"}] * 2}
    event, problems = read_node(node(annotations={"muster.dev/node-topology": json.dumps(twice)}))
    assert event.devices == ()
    assert "listed twice" in problems[0]
