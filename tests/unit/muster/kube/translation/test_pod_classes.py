import json
import tracemalloc
import uuid
from typing import Any

import msgspec
import pytest
from support.pods.jsonpods import pod

from muster.cluster.events import PlanNote, PodUpserted
from muster.cluster.specs.podconstraints import (
    HostPort,
    LabelSelector,
    Operator,
    PodClass,
    Requirement,
    TaintEffect,
    Toleration,
)
from muster.kube.translation.planannotation import encode_plan
from muster.kube.translation.translate import Translator, pod_event
from muster.kube.wire import Pod
from muster.kube.writing.podbodies import affinity_body

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def of(found: Pod, **options: Any) -> PodClass:
    return pod_event(found, **options).pod_class


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


@pytest.mark.parametrize("node", ["", "n1"])
@pytest.mark.parametrize(
    ("written", "seconds"), [(None, 30), (600, 600), (0, 0), (-1, 0), (2**63 - 1, 365 * 86_400)]
)
def test_pods_that_may_take_longer_to_end_are_of_another_class(
    node: str, written: int | None, seconds: int
) -> None:
    translator = Translator()

    def class_of(seconds: int | None) -> PodClass:
        found = pod(nodeName=node, terminationGracePeriodSeconds=seconds)
        return translator.pod_event(found).pod_class

    assert class_of(45).grace_seconds == 45
    assert class_of(written).grace_seconds == seconds


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


def preferring(*terms: tuple[int, dict[str, Any]], **more: Any) -> Pod:
    preferred = [{"weight": weight, "preference": term} for weight, term in terms]
    return pod(affinity={"nodeAffinity": {PREFERRED: preferred}}, **more)


def on_disk(value: str) -> dict[str, Any]:
    return {"matchExpressions": [{"key": "disk", "operator": "In", "values": [value]}]}


def test_preferred_nodes_are_read_with_their_weights_and_no_op_terms_left_out() -> None:
    found = of(preferring((10, on_disk("ssd")), (10, on_disk("ssd")), (0, on_disk("hdd")), (5, {})))
    assert [one.weight for one in found.preferred_nodes] == [10, 10]
    assert found.preferred_nodes[0].term.labels == (Requirement("disk", Operator.IN, ("ssd",)),)


def test_a_preference_in_words_that_are_not_known_is_ignored() -> None:
    term = {"matchExpressions": [{"key": "disk", "operator": "Near", "values": ["a"]}]}
    found = of(preferring((10, term)))
    assert not found.preferred_nodes
    assert not found.unmodelled


def test_the_preference_that_a_release_adds_for_its_node_is_not_the_pods_own() -> None:
    gated = preferring((10, on_disk("ssd")))
    note = PlanNote("plan", "n1", ("n2",))
    patch = json.loads(affinity_body(gated.metadata.uid, note, gated))
    body = msgspec.to_builtins(gated)
    body["spec"]["affinity"] = patch["spec"]["affinity"]
    body["metadata"]["annotations"] = {"muster.dev/plan": encode_plan(note)}
    assert of(msgspec.convert(body, Pod)) == of(gated)


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


def choosy(gang: str) -> Pod:
    """A pod that no other of its own gang may stand beside: a class of its gang's own."""
    apart = {"topologyKey": "host", "labelSelector": {"matchLabels": {"job-name": gang}}}
    return pod(labels={"job-name": gang}, affinity={"podAntiAffinity": {REQUIRED: [apart]}})


def test_kinds_of_gangs_that_came_and_went_take_20_mib_at_most() -> None:
    translator = Translator()
    tracemalloc.start()
    try:
        for number in range(12_000):
            translator.pod_event(choosy(f"job-{number}"), managed=True)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 20 << 20
