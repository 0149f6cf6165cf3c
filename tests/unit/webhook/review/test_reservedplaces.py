"""Pods that are made with their place in them, as the webhook answers for them.

The extender is a list of what it was asked and a function that answers; that the two understand
each other is shown by tests/integration/placement/test_reservations_real.py.
"""

import asyncio
import base64
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jsonpatch
import msgspec
import pytest
from aiohttp.test_utils import RawTestServer, TestClient
from prometheus_client import CollectorRegistry
from support.injections.injecting import facts

from loadtest.testbed.client.pods import INDEX, Gang, members, owner_reference
from muster.apiwire.reservation import Reserved, ReservedPlace
from muster.cluster.events import PlanNote
from muster.cluster.specs.podconstraints import HostPort
from muster.injection.subject import Facts
from muster.kube import names, wire
from muster.kube.translation.planannotation import plan_wire
from muster.kube.translation.selectors import host_ports
from muster.observability.health import Health
from muster.workloads.managedpods import ManagedPolicy
from webhook.config import CallersConfig
from webhook.http.callers import TokenCallers
from webhook.http.server import Admittance, Reviewing, ReviewServer
from webhook.metrics import Metrics
from webhook.review.reservedplaces import REFUSED_S, SILENCE_S, ReservedPlaces
from webhook.review.validation import ValidationRules

JSON = dict[str, Any]
GANG = Gang("train", 3)
TOKEN = "of-the-api-server"
FORGED = {names.PLAN: '{"id":"p","node":"n9"}'}


def all_places(_pod: JSON) -> Reserved:
    notes = [PlanNote(plan_id="p1", node=f"n{number}", rank=number) for number in range(3)]
    plans = map(plan_wire, notes)
    places = tuple(ReservedPlace(number, plan) for number, plan in enumerate(plans))
    return Reserved(places, seconds=10)


@dataclass
class Extender:
    """``answer`` may raise; ``asked`` are the pods that came."""

    answer: Callable[[JSON], Reserved] = all_places
    asked: list[JSON] = field(default_factory=list)
    users: list[str] = field(default_factory=list)
    now: float = 0.0
    held: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self.held.set()

    async def ask(self, pod: bytes, user: str) -> Reserved:
        self.asked.append(json.loads(pod))
        self.users.append(user)
        await self.held.wait()
        return self.answer(self.asked[-1])


@pytest.fixture
def extender() -> Extender:
    return Extender()


@pytest.fixture
def metrics() -> Metrics:
    return Metrics(CollectorRegistry())


@pytest.fixture
def token(tmp_path: Path) -> Path:
    path = tmp_path / "token"
    path.write_text(TOKEN)
    return path


Make = Callable[..., Awaitable[JSON]]


@pytest.fixture
def known() -> Facts | None:
    """What is injected; nothing, unless a test says otherwise."""
    return None


@pytest.fixture
async def make(
    extender: Extender, metrics: Metrics, known: Facts | None, token: Path
) -> AsyncIterator[Make]:
    """Send a pod to the webhook; returns it as the API server would store it.

    ``shows``: the bearer token, that of the API server where nothing else is said.
    """
    server = ReviewServer(
        Reviewing(
            ManagedPolicy(),
            ValidationRules(reserves=True),
            lambda: known,
            reservations=ReservedPlaces(extender.ask, lambda: extender.now),
        ),
        Admittance(
            body_limit_bytes=1 << 20,
            body_seconds=1.0,
            callers=TokenCallers(CallersConfig(required=False, token_file=token)),
        ),
        metrics,
        Health(),
    )
    async with TestClient(RawTestServer(server.handle)) as client:

        async def made(pod: JSON, shows: str = TOKEN, **request: object) -> JSON:
            headers = {"Authorization": f"Bearer {shows}"} if shows else {}
            asked = client.post("/mutate", data=review(pod, **request), headers=headers)
            async with asked as reply:
                response = (await reply.json())["response"]
            assert response["allowed"], response
            patch = json.loads(base64.b64decode(response.get("patch", "W10=")))
            applied: JSON = jsonpatch.apply_patch(pod, patch)
            return applied

        yield made


def review(pod: JSON, **request: object) -> bytes:
    asked = {
        "uid": "u",
        "kind": {"group": "", "version": "v1", "kind": "Pod"},
        "resource": {"group": "", "version": "v1", "resource": "pods"},
        "operation": "CREATE",
        "namespace": "default",
        "object": pod,
    }
    body = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"}
    return json.dumps(body | {"request": asked | request}).encode()


def pods(gang: Gang = GANG) -> list[JSON]:
    return [*members(gang, owner_reference(gang, "11111111-2222-3333-4444-555555555555"))]


def is_gated(pod: JSON) -> bool:
    return pod["spec"].get("schedulingGates") == [{"name": names.PLAN_GATE}]


def planned_node(pod: JSON) -> str:
    assert "schedulingGates" not in pod["spec"]
    node: str = json.loads(pod["metadata"]["annotations"][names.PLAN])["node"]
    affinity = pod["spec"]["affinity"]["nodeAffinity"]
    (term,) = affinity["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    assert term == {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}
    return node


async def test_each_pod_is_made_with_the_place_of_its_number_and_one_of_them_asks(
    make: Make, extender: Extender
) -> None:
    made = await asyncio.gather(*map(make, pods()))
    assert [planned_node(pod) for pod in made] == ["n0", "n1", "n2"]
    (asked,) = extender.asked
    assert is_gated(asked)
    assert asked["metadata"]["labels"][INDEX] == "0"
    assert asked["metadata"]["namespace"] == "default"


async def test_the_extender_learns_who_creates_the_pods(make: Make, extender: Extender) -> None:
    await make(pods()[0], userInfo={"username": "anna"})
    assert extender.users == ["anna"]


@pytest.mark.parametrize("shows", ["", "guessed"])
async def test_nothing_is_reserved_for_a_caller_that_does_not_show_who_it_is(
    make: Make, extender: Extender, shows: str
) -> None:
    assert all([is_gated(await make(pod, shows)) for pod in pods()])
    assert not extender.asked


@pytest.fixture
def no_token(token: Path) -> None:
    token.write_text("")


@pytest.mark.usefixtures("no_token")
async def test_nothing_is_reserved_while_there_is_no_token_to_show(
    make: Make, extender: Extender
) -> None:
    assert is_gated(await make(pods()[0], ""))
    assert not extender.asked


async def test_a_stranger_is_given_no_place_that_others_got_and_takes_none_from_them(
    make: Make,
) -> None:
    first = await make(pods()[0])
    assert is_gated(await make(first, ""))
    assert is_gated(await make(pods()[1], ""))
    assert planned_node(await make(first)) == "n0"
    assert planned_node(await make(pods()[1])) == "n1"


async def test_pods_of_a_gang_wait_for_the_answer_to_the_first(
    make: Make, extender: Extender
) -> None:
    extender.held.clear()
    coming = [asyncio.ensure_future(make(pod)) for pod in pods()]
    await asyncio.sleep(0.05)
    assert not any(each.done() for each in coming)
    extender.held.set()
    assert [planned_node(await each) for each in coming] == ["n0", "n1", "n2"]


async def test_another_gang_asks_for_itself(make: Make, extender: Extender) -> None:
    await make(pods()[0])
    await make(pods(Gang("other", 3))[0])
    assert len(extender.asked) == 2


async def test_where_nothing_is_reserved_pods_are_gated_and_nobody_asks_for_a_while(
    make: Make, extender: Extender
) -> None:
    extender.answer = lambda _pod: Reserved(why="not enough room")
    made = [await make(pod) for pod in pods()]
    assert all(map(is_gated, made))
    assert len(extender.asked) == 1
    extender.now += REFUSED_S
    extender.answer = all_places
    assert planned_node(await make(pods()[1])) == "n1"


async def test_a_number_without_a_place_is_gated(make: Make) -> None:
    assert is_gated(await make(pods(Gang("train", 4))[3]))


async def test_places_are_asked_for_again_when_they_are_old(make: Make, extender: Extender) -> None:
    await make(pods()[0])
    extender.now += 10
    await make(pods()[1])
    assert len(extender.asked) == 2


@pytest.mark.parametrize("error", [OSError("refused"), TimeoutError(), ValueError("503")])
async def test_an_extender_that_does_not_answer_costs_one_question_and_no_pod(
    make: Make, extender: Extender, error: Exception
) -> None:
    def silent(_pod: JSON) -> Reserved:
        raise error

    extender.answer = silent
    assert is_gated(await make(pods()[0]))
    assert is_gated(await make(pods(Gang("other", 3))[0]))
    assert len(extender.asked) == 1
    extender.now += SILENCE_S
    extender.answer = all_places
    assert planned_node(await make(pods(Gang("third", 3))[0])) == "n0"


async def test_a_dry_run_reserves_nothing(make: Make, extender: Extender) -> None:
    assert is_gated(await make(pods()[0], dryRun=True))
    assert not extender.asked


async def test_pods_with_a_gate_of_others_are_gated_too(make: Make, extender: Extender) -> None:
    pod = pods()[0]
    pod["spec"]["schedulingGates"] = [{"name": "example.com/quota"}]
    made = await make(pod)
    assert [gate["name"] for gate in made["spec"]["schedulingGates"]][-1] == names.PLAN_GATE
    assert not extender.asked


async def test_other_affinity_stays_beside_the_pin(make: Make) -> None:
    pod = pods()[0]
    pod["spec"]["affinity"] = {"podAntiAffinity": {}}
    made = await make(pod)
    assert planned_node(made) == "n0"
    assert made["spec"]["affinity"]["podAntiAffinity"] == {}


async def test_a_place_is_given_once(make: Make, extender: Extender) -> None:
    """Whoever has a number again takes the place of a pod that is lost, maybe with its node."""
    assert planned_node(await make(pods()[1])) == "n1"
    assert is_gated(await make(pods()[1]))
    assert len(extender.asked) == 1


async def test_a_second_look_at_a_pod_leaves_its_place(make: Make, extender: Extender) -> None:
    once = await make(pods()[1])
    assert await make(once) == once
    assert len(extender.asked) == 1


async def test_a_pod_changed_since_asks_again_and_keeps_its_place_if_it_is_still_that(
    make: Make, extender: Extender
) -> None:
    changed = await make(pods()[1])
    changed["spec"]["containers"].append({"name": "mesh", "image": "example.com/mesh"})
    assert await make(changed) == changed
    assert len(extender.asked) == 2
    assert names.PLAN not in extender.asked[1]["metadata"]["annotations"]
    assert "affinity" not in extender.asked[1]["spec"]


async def test_a_pod_changed_to_what_the_place_is_not_for_is_gated_and_so_are_the_others(
    make: Make, extender: Extender
) -> None:
    changed = await make(pods()[1])
    changed["spec"]["containers"].append({"name": "mesh", "image": "example.com/mesh"})
    extender.answer = lambda _pod: Reserved(why="members ask for different things")
    again = await make(changed)
    assert is_gated(again)
    assert names.PLAN not in again["metadata"]["annotations"]
    assert "nodeAffinity" not in again["spec"].get("affinity", {})
    assert is_gated(await make(pods()[2]))


async def test_a_plan_that_somebody_else_wrote_is_taken_off(make: Make) -> None:
    forged = pods()[0]
    forged["metadata"]["annotations"] |= FORGED
    made = await make(forged)
    assert FORGED[names.PLAN] != made["metadata"]["annotations"].get(names.PLAN)


async def test_placed_pods_are_counted_apart_from_gated_ones(make: Make, metrics: Metrics) -> None:
    for pod in pods(Gang("train", 4)):
        await make(pod)
    shown = {
        sample.name: sample.value
        for family in metrics.registry.collect()
        for sample in family.samples
    }
    assert shown["muster_webhook_pods_placed_total"] == 3
    assert shown["muster_webhook_pods_gated_total"] == 1


# -- the pod as it will be stored ------------------------------------------------------------------

# Four pods of four GPUs on two nodes of eight: by GPUs two go on a node, by their port one does.
ON_HOST = facts({"profile": "generic-roce-hostnet"})


def with_ports(*, host_network: bool) -> list[JSON]:
    made = pods(Gang("train", 4))
    for pod in made:
        (container,) = pod["spec"]["containers"]
        container["ports"] = [{"containerPort": 2222, "protocol": "TCP"}]
        if host_network:
            pod["spec"]["hostNetwork"] = True
            container["ports"][0]["hostPort"] = 2222  # the API server's own work
    return made


@pytest.mark.parametrize("known", [ON_HOST])
@pytest.mark.parametrize("host_network", [False, True])
async def test_a_pod_that_is_put_on_the_hosts_network_asks_for_the_ports_that_it_will_have(
    make: Make, extender: Extender, *, host_network: bool
) -> None:
    await make(with_ports(host_network=host_network)[0])
    (asked,) = extender.asked
    assert asked["spec"]["hostNetwork"] is True
    assert asked["spec"]["containers"][0]["ports"] == [
        {"containerPort": 2222, "protocol": "TCP", "hostPort": 2222}
    ]
    assert host_ports(msgspec.convert(asked, wire.Pod).spec) == (HostPort("", "TCP", 2222),)


@pytest.mark.parametrize("known", [ON_HOST])
async def test_what_is_added_to_limits_alone_is_asked_for(make: Make, extender: Extender) -> None:
    pod = pods()[0]
    pod["spec"]["containers"][0]["resources"] = {"limits": {"nvidia.com/gpu": "8", "cpu": "2"}}
    await make(pod)
    (asked,) = extender.asked
    requested = asked["spec"]["containers"][0]["resources"]["requests"]
    assert requested == {"nvidia.com/gpu": "8", "cpu": "2", "rdma/roce_v2": "1"}
