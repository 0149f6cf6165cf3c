"""The owners of a pod, asked of an API server that counts and can be late, away or wrong.

::

    Pod ─► ReplicaSet web-1 (r1) ─► Deployment web (d)
"""

import asyncio
import json
from collections import Counter
from dataclasses import dataclass, field, replace

import msgspec
import pytest
from support.injections.injecting import facts
from support.injections.overriding import JSON, NAMESPACE, loaded, pod, rules

from muster.injection.subject import Facts
from muster.kube import wire
from muster.kube.client import METADATA_ONLY
from muster.kube.errors import Forbidden, NotFound, Status, TransportError
from muster.kube.http.transport import JSON as WHOLE
from muster.kube.http.transport import HttpRequest
from webhook.facts.owners import KEEP_S, OwnerLookup
from webhook.review.wire import AdmissionRequest

APPS: JSON = {
    "resources": [
        {"name": "deployments", "kind": "Deployment", "namespaced": True},
        {"name": "deployments/scale", "kind": "Scale", "namespaced": True},
        {"name": "replicasets", "kind": "ReplicaSet", "namespaced": True},
    ]
}
LABEL = "kubeadmiral.io/override-policy-name"
DEPLOYMENTS = f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments"
REPLICA_SETS = f"/apis/apps/v1/namespaces/{NAMESPACE}/replicasets"


def reference(kind: str, name: str, uid: str, api_version: str = "apps/v1") -> JSON:
    return {"apiVersion": api_version, "kind": kind, "name": name, "uid": uid, "controller": True}


@dataclass
class Server:
    """``objects`` by path. ``late``: answers wait for this. ``away``: nobody answers."""

    objects: dict[str, JSON] = field(default_factory=dict)
    asked: list[HttpRequest] = field(default_factory=list)
    late: asyncio.Event | None = None
    away: bool = False
    now: float = 1000.0

    async def send(self, request: HttpRequest) -> bytes:
        self.asked.append(request)
        await asyncio.sleep(0)
        if self.late is not None:
            await self.late.wait()
        if self.away:
            raise TransportError("nobody is there")
        if request.path.startswith("/apis/secret.example/"):
            raise Forbidden(403, Status(message="no"))
        if request.path not in self.objects:
            raise NotFound(404, Status(message=request.path))
        return json.dumps(self.objects[request.path]).encode()

    def replica_set(self, name: str, uid: str) -> None:
        owner = reference("Deployment", "web", "d")
        meta = {"name": name, "uid": uid, "ownerReferences": [owner]}
        spec = {"selector": {"matchLabels": {"app": "web"}}}
        self.objects[f"{REPLICA_SETS}/{name}"] = {"metadata": meta, "spec": spec}

    def deployment(self, **labels: str) -> None:
        meta = {"name": "web", "uid": "d", "labels": labels}
        kind = {"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata"}
        self.objects[f"{DEPLOYMENTS}/web"] = {**kind, "metadata": meta}

    def counts(self) -> Counter[str]:
        return Counter(request.path for request in self.asked)


@pytest.fixture
def server() -> Server:
    made = Server({"/apis/apps/v1": APPS})
    made.replica_set("web-1", "r1")
    made.deployment(a="1")
    return made


def lookup(server: Server, deadline_s: float = 60.0, **more: int) -> OwnerLookup:
    return OwnerLookup(server.send, deadline_s=deadline_s, clock=lambda: server.now, **more)


def below(*owner: str) -> wire.ObjectMeta:
    own = reference(*owner) if owner else reference("ReplicaSet", "web-1", "r1")
    return msgspec.convert({"ownerReferences": [own]}, wire.ObjectMeta)


async def labels(found: OwnerLookup, meta: wire.ObjectMeta | None = None) -> dict[str, str]:
    """The labels of the Deployment, as they are known."""
    owners = await found.above(meta or below(), NAMESPACE)
    return dict(owners["d"].labels) if "d" in owners else {}


async def test_the_chain_is_followed_to_its_top(server: Server) -> None:
    owners = await lookup(server).above(below(), NAMESPACE)
    replica_set, deployment = owners["r1"], owners["d"]
    assert (replica_set.kind, replica_set.name) == ("ReplicaSet", "web-1")
    assert replica_set.selects == {"app"}
    assert (deployment.api_version, deployment.kind) == ("apps/v1", "Deployment")
    assert deployment.labels == {"a": "1"}


async def test_a_spec_is_asked_for_only_where_it_matters(server: Server) -> None:
    await lookup(server).above(below(), NAMESPACE)
    accepted = {request.path.rpartition("/")[0]: request.accept for request in server.asked}
    assert accepted[REPLICA_SETS] == WHOLE
    assert accepted[DEPLOYMENTS] == METADATA_ONLY


async def test_pods_that_come_together_wait_for_one_answer(server: Server) -> None:
    server.late = asyncio.Event()
    found = lookup(server)
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(labels(found)) for _ in range(100)]
        await asyncio.sleep(0)
        server.late.set()
    assert all(task.result() == {"a": "1"} for task in tasks)
    assert set(server.counts().values()) == {1}


async def test_an_answer_is_kept_for_a_while_and_then_asked_for_again(server: Server) -> None:
    found = lookup(server)
    await labels(found)
    server.deployment(a="2")
    server.now += KEEP_S
    assert await labels(found) == {"a": "1"}
    server.now += 0.1
    assert await labels(found) == {"a": "2"}
    assert server.counts()["/apis/apps/v1"] == 1


async def test_above_an_object_that_is_new_everything_is_asked_for_again(server: Server) -> None:
    """A rollout: the labels change, and a moment later there is another ReplicaSet."""
    found = lookup(server)
    await labels(found)
    server.now += 0.5
    server.deployment(a="2")
    server.replica_set("web-2", "r2")
    assert await labels(found, below("ReplicaSet", "web-2", "r2")) == {"a": "2"}
    asked = len(server.asked)
    assert await labels(found) == {"a": "2"}  # the older one's pods, too, and nothing is asked
    assert len(server.asked) == asked


async def test_an_object_of_the_same_name_is_not_the_owner(server: Server) -> None:
    assert await lookup(server).above(below("ReplicaSet", "web-1", "other"), NAMESPACE) == {}


@pytest.mark.parametrize(
    "owner",
    [
        ("ReplicaSet", "gone", "g"),
        ("Scale", "web", "s"),
        ("Thing", "t", "t", "none.example/v1"),
        ("Thing", "t", "t", "secret.example/v1"),
    ],
)
async def test_one_that_is_not_there_is_not_asked_for_again_at_once(
    server: Server, owner: tuple[str, ...]
) -> None:
    found = lookup(server)
    for _ in range(3):
        assert await found.above(below(*owner), NAMESPACE) == {}
    assert max(server.counts().values()) == 1


@pytest.mark.parametrize(
    "owner",
    [
        ("ReplicaSet", "../../secrets/x", "g"),
        ("ReplicaSet", "..", "g"),
        ("ReplicaSet", "%2e%2e", "g"),
        ("Deployment", "web", "d", "../../api/v1"),
        ("Deployment", "web", "d", "apps/v1/namespaces"),
        ("Deployment", "web", "d", "apps/v1?watch=1"),
        ("Deployment", "web", "d", ""),
    ],
)
async def test_a_reference_leads_to_no_other_path(server: Server, owner: tuple[str, ...]) -> None:
    assert await lookup(server).above(below(*owner), NAMESPACE) == {}
    assert set(server.counts()) <= {"/apis/apps/v1"}


async def test_what_was_known_counts_while_nobody_answers(server: Server) -> None:
    found = lookup(server)
    await labels(found)
    server.away = True
    server.now += 60
    assert await labels(found) == {"a": "1"}


async def test_what_was_deleted_is_forgotten(server: Server) -> None:
    found = lookup(server)
    await labels(found)
    del server.objects[f"{DEPLOYMENTS}/web"]
    server.now += 60
    assert await labels(found) == {}


async def test_a_late_answer_is_not_waited_for_and_serves_those_who_come_later(
    server: Server,
) -> None:
    found = lookup(server, deadline_s=0.0)
    assert await labels(found) == {}  # no time at all
    found = lookup(server)
    server.late = asyncio.Event()
    first = asyncio.create_task(labels(found))
    second = asyncio.create_task(labels(found))
    await asyncio.sleep(0)
    first.cancel()
    server.late.set()
    assert await second == {"a": "1"}
    assert first.cancelled()


async def test_no_more_than_so_many_are_kept(server: Server) -> None:
    found = lookup(server, at_most=2)
    await labels(found)
    server.replica_set("web-2", "r2")
    server.now += 1
    await labels(found, below("ReplicaSet", "web-2", "r2"))
    before = server.counts()[f"{REPLICA_SETS}/web-1"]
    await labels(found)
    assert server.counts()[f"{REPLICA_SETS}/web-1"] == before + 1


async def test_what_is_no_answer_is_like_none(server: Server) -> None:
    server.objects["/apis/apps/v1"] = {"resources": 5}
    assert await labels(lookup(server)) == {}
    server.objects["/apis/apps/v1"] = APPS
    server.objects[f"{DEPLOYMENTS}/web"] = {"metadata": []}
    assert await labels(lookup(server)) == {}


# -- which pods need it --------------------------------------------------------------------------

KNOWN = replace(facts(), policies=loaded(rules("kubeadmiral", {})))


def request(of: JSON, **more: object) -> AdmissionRequest:
    given = {
        "uid": "u",
        "kind": {"group": "", "version": "v1", "kind": "Pod"},
        "resource": {"group": "", "version": "v1", "resource": "pods"},
        "operation": "CREATE",
        "namespace": NAMESPACE,
        "object": of,
        **more,
    }
    return msgspec.json.decode(json.dumps(given), type=AdmissionRequest)


OWNED = pod(meta={"ownerReferences": [reference("ReplicaSet", "web-1", "r1")]})


async def test_the_facts_get_the_owners_of_the_pod(server: Server) -> None:
    known = await lookup(server).facts(request(OWNED), KNOWN)
    assert set(known.owners) == {"r1", "d"}
    assert known.policies is KNOWN.policies
    assert KNOWN.owners == {}


MIRROR = {"annotations": {"kubernetes.io/config.mirror": "x"}}
OPTED_OUT = {"labels": {"muster.dev/inject": "false"}}


@pytest.mark.parametrize(
    ("of", "known"),
    [
        (request(OWNED), facts()),
        (request(OWNED, namespace="team-b"), KNOWN),
        (request(pod()), KNOWN),
        (request({**OWNED, "metadata": OWNED["metadata"] | MIRROR}), KNOWN),
        (request({**OWNED, "metadata": OWNED["metadata"] | OPTED_OUT}), KNOWN),
        (request(OWNED, operation="UPDATE"), KNOWN),
        (request(OWNED, subResource="binding"), KNOWN),
        (request({"metadata": []}), KNOWN),
    ],
    ids=[
        "no policies",
        "policies of others",
        "no owner",
        "static",
        "opted out",
        "an update",
        "a binding",
        "no pod",
    ],
)
async def test_nobody_is_asked_where_no_owner_matters(
    server: Server, of: AdmissionRequest, known: Facts
) -> None:
    assert await lookup(server).facts(of, known) is known
    assert server.asked == []
