"""What contradicts itself is refused at the door and by the planner, in its user's own words.

::

    zone z ─ block b ─ rack r ─┬─ n1   8 GPUs
                               └─ n2   8 GPUs
"""

import json
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from aiohttp.test_utils import RawTestServer, TestClient
from aiohttp.web import BaseRequest
from prometheus_client import CollectorRegistry
from support.clusters.gangworld import PODS, World
from support.dialects.contradicted import GPU, ROWS, Row

from muster.observability.health import Health
from muster.placement.decision import Reject, RejectReason
from muster.placement.reasons.explanation import render
from muster.workloads.managedpods import ManagedPolicy
from webhook.http.server import Admittance, Reviewing, ReviewServer
from webhook.metrics import Metrics
from webhook.review.validation import ValidationRules, planned_by

JSON = dict[str, Any]
Client = TestClient[BaseRequest, None]
AT_THE_DOOR = [row for row in ROWS if row.at_the_door]


@pytest.fixture
async def webhook() -> AsyncIterator[Client]:
    """Give the webhook's own server, configured as it configures itself."""
    policy = ManagedPolicy()
    rules = ValidationRules(devices=policy.device_problems, plans=planned_by(policy))
    server = ReviewServer(
        Reviewing(policy, rules),
        Admittance(body_limit_bytes=1 << 20, body_seconds=5.0),
        Metrics(CollectorRegistry()),
        Health(),
    )
    async with TestClient(RawTestServer(server.handle)) as client:
        yield client


async def reviewed(webhook: Client, row: Row, **request: Any) -> JSON:
    """Return the webhook's response about creating a row's object."""
    what = {"group": row.group, "version": "v1", "resource": row.plural}
    body = {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": "u", "kind": {"group": row.group, "version": "v1", "kind": "Kind"},
            "resource": what, "operation": "CREATE", "namespace": "team-a",
            "object": row.body, **request,
        },
    }  # fmt: skip
    path = "/mutate" if (row.group, row.plural) == PODS else "/validate"
    reply = await webhook.post(f"{path}?timeout=3s", data=json.dumps(body))
    found: JSON = (await reply.json())["response"]
    return found


def cluster() -> World:
    world = World()
    for name in ("n1", "n2"):
        world.node(name, {"nvidia.com/gpu": "8"})
    return world


def rejected(world: World, row: Row) -> Iterator[Reject]:
    world.add(row.group, row.plural, row.body)
    for decision in world.decisions():
        assert isinstance(decision, Reject), decision
        yield decision


@pytest.mark.parametrize("row", AT_THE_DOOR, ids=lambda row: row.name)
async def test_the_webhook_refuses_it_and_names_the_users_own_key(
    webhook: Client, row: Row
) -> None:
    response = await reviewed(webhook, row)
    assert response["allowed"] is False
    assert response["status"]["code"] == 422
    for word in row.words:
        assert word in response["status"]["message"]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_the_planner_rejects_it_at_once_and_names_the_users_own_key(row: Row) -> None:
    (decision,) = rejected(cluster(), row)
    assert not decision.reason.of_the_fleet
    for word in row.words:
        assert word in decision.message
    assert "can never be placed as written" in render(decision)[0]


@pytest.mark.parametrize("row", AT_THE_DOOR, ids=lambda row: row.name)
async def test_it_is_said_once_and_not_in_two_ways(webhook: Client, row: Row) -> None:
    (decision,) = rejected(cluster(), row)
    response = await reviewed(webhook, row)
    for told in (decision.message, response["status"]["message"]):
        assert told.count("is not allowed") <= 1


@pytest.mark.parametrize("row", AT_THE_DOOR, ids=lambda row: row.name)
async def test_an_object_from_before_the_rules_can_still_be_changed(
    webhook: Client, row: Row
) -> None:
    if (row.group, row.plural) == PODS:
        return  # a pod's update goes to the validating webhook, see tests/unit/webhook
    response = await reviewed(webhook, row, operation="UPDATE", oldObject=row.body)
    assert response["allowed"] is True


async def test_what_is_another_schedulers_is_let_through(webhook: Client) -> None:
    row = next(row for row in ROWS if row.name == "volcano job: minimum over size")
    spec = json.loads(json.dumps(row.body["spec"]))
    spec["tasks"][0]["template"]["spec"]["schedulerName"] = "somebody-elses"
    theirs = Row(row.name, row.group, row.plural, row.body | {"spec": spec}, ())
    assert (await reviewed(webhook, theirs))["allowed"] is True


@pytest.mark.parametrize("row", [row for row in ROWS if not row.at_the_door], ids=lambda r: r.name)
async def test_a_pod_group_without_keys_of_musters_may_be_anybodys(
    webhook: Client, row: Row
) -> None:
    assert (await reviewed(webhook, row))["allowed"] is True


# --- what only the nodes can tell -------------------------------------------------------


def pod(limits: JSON, annotations: JSON | None = None) -> Row:
    meta = {"name": "p", "namespace": "team-a", "annotations": annotations or {}}
    containers = [GPU | {"resources": {"limits": limits, "requests": limits}}]
    return Row("", *PODS, {"metadata": meta, "spec": {"containers": containers}}, ())


@pytest.mark.parametrize(
    ("row", "words"),
    [
        (pod({"nvidia.com/gpu": "16"}), ("16 nvidia.com/gpu", "the largest node has 8")),
        (pod({"nvidia.com/mig-7g.80gb": "1"}), ("mig-7g.80gb",)),
    ],
)
async def test_more_than_any_node_has_is_no_contradiction_and_is_told_as_such(
    webhook: Client, row: Row, words: tuple[str, ...]
) -> None:
    assert (await reviewed(webhook, row))["allowed"] is True
    (decision,) = rejected(cluster(), row)
    assert decision.reason is RejectReason.LARGER_THAN_ANY_NODE
    assert "fits no nodes that the cluster has now, even empty" in render(decision)[0]
    assert "ask for less, or add nodes" in decision.message
    for word in words:
        assert word in decision.message


async def test_a_mig_profile_that_no_model_has_is_told_with_those_there_are(
    webhook: Client,
) -> None:
    world = World()
    labels = {
        "nvidia.com__gpu_product": "NVIDIA-A100-SXM4-40GB",
        "nvidia.com__mig_strategy": "mixed",
    }
    world.node("cut", {"nvidia.com/mig-3g.20gb": "2"}, **labels)
    row = pod({"nvidia.com/mig-3g.40gb": "1"})
    assert (await reviewed(webhook, row))["allowed"] is True
    (decision,) = rejected(world, row)
    assert decision.reason.of_the_fleet
    assert "3g.40gb" in decision.message
    assert "3g.20gb" in decision.message


async def test_a_slice_larger_than_any_rack_waits_for_a_larger_rack(webhook: Client) -> None:
    keys = {"gang": "g", "gang-size": "4", "slice-size": "4", "slice-topology": "rack"}
    row = pod({"nvidia.com/gpu": "8"}, {f"muster.dev/{key}": text for key, text in keys.items()})
    assert (await reviewed(webhook, row))["allowed"] is True
    world = cluster()
    for _ in range(3):
        world.add(*PODS, row.body)
    (decision,) = rejected(world, row)
    assert decision.reason is RejectReason.LARGER_THAN_ANY_DOMAIN
    assert "muster.dev/slice-size" in decision.message
    assert "the largest muster.dev/rack takes 2 when empty" in decision.message
    for name in ("n3", "n4"):
        world.node(name, {"nvidia.com/gpu": "8"})
    assert not any(isinstance(found, Reject) for found in world.decisions())
