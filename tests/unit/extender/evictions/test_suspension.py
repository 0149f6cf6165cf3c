"""Which job is suspended for a gang that gives way: the one that decides whether the gang runs."""

from typing import Any

import msgspec
import pytest
from support.extenders.owningkinds import APIS, made_of, ray_job, train_job

from extender.evictions.marks import EvictionMark
from extender.evictions.suspension import JobSuspender
from muster.cluster.specs.gangspec import GangSpec
from muster.kube import names
from muster.kube.errors import NotFound, Status
from muster.kube.resources import Resource
from muster.workloads.dialect import gang_key
from muster.workloads.dialects.jobset import JobSets
from muster.workloads.dialects.ray import RayClusters
from muster.workloads.jobowners import OWNERS

JSON = dict[str, Any]
MARK = EvictionMark("raycluster/ns/a-x", "job/ns/b", "it has a lower priority")
KINDS: dict[tuple[str, str], Resource[Any]] = {
    (each.group, each.plural): Resource(each.group, each.version, each.plural, each.type)
    for each in (*RayClusters.watched, *JobSets.watched)
} | {(each.group, each.plural): each for each in OWNERS}


class Stored:
    """Objects of an API server, by plural and name, and the patches that it was sent."""

    def __init__(self, *objects: JSON) -> None:
        self.objects = {_at(each): each for each in objects}
        self.patched: list[tuple[str, str, JSON]] = []
        self.gets = 0

    async def get(self, resource: Resource[Any], name: str, **_: object) -> Any:
        self.gets += 1
        found = self.objects.get((resource.plural, name))
        if found is None:
            raise NotFound(404, Status())
        return msgspec.convert(found, resource.type)

    async def patch(self, resource: Resource[Any], name: str, body: JSON, **_: object) -> None:
        self.patched.append((resource.plural, name, body))


def _at(found: JSON) -> tuple[str, str]:
    return f"{found['kind'].lower()}s", found["metadata"]["name"]


def _job(kind: str, **spec: object) -> JSON:
    meta = {"name": "a", "namespace": "ns", "uid": "u", "annotations": {}}
    found = {"RayJob": ray_job, "TrainJob": train_job}[kind](2)
    return {"apiVersion": APIS[kind], "kind": kind, "metadata": meta, "spec": {**found, **spec}}


def _gang(made: JSON) -> GangSpec:
    dialect, name = made["kind"].lower(), made["metadata"]["name"]
    return GangSpec(
        key=gang_key(dialect, "ns", name), namespace="ns", name=name, dialect=dialect, min_count=2
    )


async def _suspended(client: Stored, made: JSON, served: dict[Any, Any] = KINDS) -> Any:
    suspender = JobSuspender(client, served)  # type: ignore[arg-type]
    return await suspender.suspend(_gang(made), MARK)


@pytest.mark.parametrize("kind", ["RayJob", "TrainJob"])
async def test_the_job_is_suspended_that_made_the_object_of_the_gang(kind: str) -> None:
    job = _job(kind)
    made = made_of(job, "a" if kind == "TrainJob" else "a-x7k2p")
    client = Stored(job, made)

    about = await _suspended(client, made)

    ((plural, name, body),) = client.patched
    assert (plural, name) == _at(job)
    assert body["spec"] == {"suspend": True}
    assert body["metadata"]["annotations"][names.SUSPENDED_BY] == names.MUSTER
    assert (about.kind, about.name, about.uid) == (kind, "a", "u")


async def test_a_job_that_is_suspended_already_is_left_as_it_is() -> None:
    job = _job("RayJob", suspend=True)
    job["metadata"]["annotations"] = {names.SUSPENDED_BY: names.MUSTER}
    client = Stored(job, made_of(job, "a-x"))
    about = await _suspended(client, made_of(job, "a-x"))
    assert (about.kind, client.patched) == ("RayJob", [])


@pytest.mark.parametrize(
    "changed",
    [
        {"spec": {"shutdownAfterJobFinishes": False}},
        {"status": {"jobDeploymentStatus": "Waiting"}},
        {"metadata": {"uid": "another of that name"}},
    ],
)
async def test_nothing_is_suspended_in_place_of_a_job_that_cannot_be(changed: JSON) -> None:
    job = _job("RayJob")
    made = made_of(job, "a-x")
    for part, fields in changed.items():
        job[part] = {**job.get(part, {}), **fields}
    client = Stored(job, made)
    assert await _suspended(client, made) is None
    assert client.patched == []


async def test_an_owner_that_is_no_controller_decides_nothing() -> None:
    made = made_of(_job("RayJob"), "a-x")
    made["metadata"]["ownerReferences"][0]["controller"] = False
    client = Stored(_job("RayJob"), made)
    about = await _suspended(client, made)
    assert (about.kind, about.name) == ("RayCluster", "a-x")


async def test_nothing_is_suspended_where_the_owner_is_gone_or_its_kind_is_not_served() -> None:
    made = made_of(_job("RayJob"), "a-x")
    without = {at: each for at, each in KINDS.items() if at != ("ray.io", "rayjobs")}
    for client, served in ((Stored(made), KINDS), (Stored(_job("RayJob"), made), without)):
        assert await _suspended(client, made, served) is None
        assert client.patched == []


async def test_objects_that_name_each_other_as_owners_are_looked_at_a_few_times() -> None:
    made = made_of(_job("RayJob"), "a-x")
    made["metadata"] |= {"uid": "u"}
    made["metadata"]["ownerReferences"][0] |= {"kind": "RayCluster", "name": "a-x"}
    client = Stored(made)
    assert await _suspended(client, made) is None
    assert client.gets == 4
