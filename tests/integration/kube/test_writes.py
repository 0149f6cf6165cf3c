"""What `kube` writes on a real API server: releases, Bindings, evictions."""

import pytest
from support.pods.kubepods import (
    GATE,
    OTHER_UID,
    PREFERRED,
    REQUIRED,
    field,
    make_pod,
    note,
    numbers,
    raw,
    ref,
)

from muster.kube.client import KubeClient
from muster.kube.errors import NotFound, TooManyRequests
from muster.kube.resources import PODS, Resource
from muster.kube.translation.planannotation import plan_note
from muster.kube.wire import Namespace
from muster.kube.writing.podwrites import (
    AlreadyReleased,
    Bound,
    BoundElsewhere,
    Conflicted,
    PinKind,
    PodRef,
    PodVanished,
    Released,
    WriteRefused,
    bind_pod,
    evict_pod,
    release_pod,
)

pytestmark = [pytest.mark.integration, pytest.mark.asyncio(loop_scope="module")]

# -- releasing -----------------------------------------------------------------------------------


async def test_a_release_lifts_only_our_gate_and_pins_in_the_same_write(client: KubeClient) -> None:
    pod = await make_pod(client, gates=("kueue.x-k8s.io/admission", GATE))
    outcome = await release_pod(client, ref(pod), note("n1", "n2"), seen=pod)
    assert isinstance(outcome, Released)
    found = await raw(client, pod)
    assert found["spec"]["schedulingGates"] == [{"name": "kueue.x-k8s.io/admission"}]
    affinity = found["spec"]["affinity"]["nodeAffinity"]
    assert affinity[REQUIRED] == {"nodeSelectorTerms": field("n1", "n2")}
    assert affinity[PREFERRED] == [{"weight": 100, "preference": field("n1")[0]}]
    assert plan_note(found["metadata"]["annotations"][GATE]) == note("n1", "n2")
    assert found["metadata"]["resourceVersion"] == outcome.resource_version


async def test_releasing_again_to_the_same_nodes_changes_nothing(client: KubeClient) -> None:
    pod = await make_pod(client)
    first = await release_pod(client, ref(pod), note("n1"), seen=pod)
    assert await release_pod(client, ref(pod), note("n1"), seen=pod) == first
    seen = await client.get_pod("default", pod.metadata.name)
    assert await release_pod(client, ref(pod), note("n1"), seen=seen) == first


async def test_releasing_to_another_node_afterwards_reports_where_it_went(
    client: KubeClient,
) -> None:
    pod = await make_pod(client)
    await release_pod(client, ref(pod), note("n1"), seen=pod)
    outcome = await release_pod(client, ref(pod), note("n2"), seen=pod)
    assert outcome == AlreadyReleased(note("n1"), None)
    await bind_pod(client, ref(pod), "n1")
    outcome = await release_pod(client, ref(pod), note("n2"), seen=pod)
    assert outcome == AlreadyReleased(note("n1"), "n1")


async def test_a_pod_that_was_recreated_or_deleted_is_not_touched(client: KubeClient) -> None:
    pod = await make_pod(client)
    assert await release_pod(client, ref(pod, uid=OTHER_UID), note("n1")) == PodVanished()
    nominated = await release_pod(client, ref(pod, uid=OTHER_UID), note("n1"), pin=PinKind.NOMINATE)
    assert nominated == PodVanished()
    assert GATE not in (await raw(client, pod))["metadata"].get("annotations", {})
    await client.delete(PODS, pod.metadata.name, namespace="default", uid=pod.metadata.uid)
    assert await release_pod(client, ref(pod), note("n1")) == PodVanished()


async def test_own_required_terms_are_each_tightened_and_own_preferences_kept(
    client: KubeClient,
) -> None:
    zone = {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}
    fast = {"matchExpressions": [{"key": "fast", "operator": "Exists"}]}
    wish = {"weight": 5, "preference": {"matchExpressions": [{"key": "x", "operator": "Exists"}]}}
    required = {"nodeSelectorTerms": [zone, fast]}
    pod = await make_pod(client, affinity={"nodeAffinity": {REQUIRED: required, PREFERRED: [wish]}})
    assert isinstance(await release_pod(client, ref(pod), note("n1"), seen=pod), Released)
    affinity = (await raw(client, pod))["spec"]["affinity"]["nodeAffinity"]
    assert affinity[REQUIRED]["nodeSelectorTerms"] == [
        {**zone, **field("n1")[0]},
        {**fast, **field("n1")[0]},
    ]
    assert affinity[PREFERRED] == [wish]


async def test_own_preferences_survive_beside_the_preference_for_the_planned_node(
    client: KubeClient,
) -> None:
    wish = {"weight": 5, "preference": {"matchExpressions": [{"key": "x", "operator": "Exists"}]}}
    pod = await make_pod(client, affinity={"nodeAffinity": {PREFERRED: [wish]}})
    assert isinstance(await release_pod(client, ref(pod), note("n1", "n2"), seen=pod), Released)
    affinity = (await raw(client, pod))["spec"]["affinity"]["nodeAffinity"]
    assert affinity[PREFERRED] == [{"weight": 100, "preference": field("n1")[0]}, wish]


async def test_a_pod_with_own_terms_is_released_only_as_it_was_read(client: KubeClient) -> None:
    terms = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "z", "operator": "Exists"}]}]}
    pod = await make_pod(client, affinity={"nodeAffinity": {REQUIRED: terms}})
    await client.patch(
        PODS, pod.metadata.name, {"metadata": {"labels": {"a": "b"}}}, namespace="default"
    )
    assert await release_pod(client, ref(pod), note("n1"), seen=pod) == Conflicted()
    # Without having been read, its terms would be lost: the server does not allow it.
    outcome = await release_pod(client, ref(pod), note("n1"))
    assert isinstance(outcome, WriteRefused)
    assert "nodeSelectorTerms" in outcome.message


async def test_a_soft_pin_nominates_before_it_lifts_the_gate(client: KubeClient) -> None:
    pod = await make_pod(client)
    outcome = await release_pod(client, ref(pod), note("n1"), pin=PinKind.NOMINATE)
    assert isinstance(outcome, Released)
    found = await raw(client, pod)
    assert found["status"]["nominatedNodeName"] == "n1"
    assert "schedulingGates" not in found["spec"]
    assert "affinity" not in found["spec"]
    assert plan_note(found["metadata"]["annotations"][GATE]) == note("n1")


async def test_a_soft_pin_of_an_ungated_pod_annotates_it(client: KubeClient) -> None:
    pod = await make_pod(client, gates=())
    assert isinstance(
        await release_pod(client, ref(pod), note("n1"), pin=PinKind.NOMINATE), Released
    )
    found = await client.get_pod("default", pod.metadata.name)
    assert found.status.nominated_node_name == "n1"
    assert plan_note(found.metadata.annotations[GATE]) == note("n1")


# -- binding and evicting ------------------------------------------------------------------------


async def test_binding_is_idempotent_and_adds_annotations(client: KubeClient) -> None:
    pod = await make_pod(client, gates=())
    assert await bind_pod(client, ref(pod), "n1", annotations={GATE: "{}"}) == Bound()
    assert await bind_pod(client, ref(pod), "n1") == Bound(before=True)
    assert await bind_pod(client, ref(pod), "n2") == BoundElsewhere("n1")
    found = await client.get_pod("default", pod.metadata.name)
    assert (found.spec.node_name, found.metadata.annotations) == ("n1", {GATE: "{}"})


async def test_a_binding_for_another_uid_or_a_gated_pod_is_refused(client: KubeClient) -> None:
    pod = await make_pod(client)
    assert await bind_pod(client, ref(pod, uid=OTHER_UID), "n1") == PodVanished()
    gated = await bind_pod(client, ref(pod), "n1")
    assert isinstance(gated, WriteRefused)
    assert "schedulingGates" in gated.message
    missing = PodRef("default", "no-such-pod", OTHER_UID)
    assert await bind_pod(client, missing, "n1") == PodVanished()


async def test_eviction_takes_a_pending_pod_of_this_uid_only(client: KubeClient) -> None:
    pod = await make_pod(client)
    await evict_pod(client, ref(pod, uid=OTHER_UID))  # that one is gone, so it is done
    assert (await client.get_pod("default", pod.metadata.name)).metadata.uid == pod.metadata.uid
    await evict_pod(client, ref(pod))
    with pytest.raises(NotFound):
        await client.get_pod("default", pod.metadata.name)
    await evict_pod(client, ref(pod))  # gone already: done


async def test_a_disruption_budget_stops_an_eviction_and_it_is_not_repeated(
    client: KubeClient,
) -> None:
    pod = await make_pod(client, gates=())
    await client.patch(
        PODS, pod.metadata.name, {"metadata": {"labels": {"app": "kept"}}}, namespace="default"
    )
    await bind_pod(client, ref(pod), "n1")
    status = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    await client.patch(
        PODS, pod.metadata.name, {"status": status}, namespace="default", subresource="status"
    )
    budget = {
        "metadata": {"name": f"budget-{next(numbers)}"},
        "spec": {"maxUnavailable": 0, "selector": {"matchLabels": {"app": "kept"}}},
    }
    budgets = Resource("policy", "v1", "poddisruptionbudgets", Namespace)
    await client.create(budgets, budget, namespace="default")
    with pytest.raises(TooManyRequests):
        await evict_pod(client, ref(pod))
