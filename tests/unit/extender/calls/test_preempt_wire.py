"""The bodies of ``preempt`` as Go's encoder writes them, byte for byte, and what goes back.

Keys and nulls: ``TestCompatibility`` of k8s.io/kube-scheduler ``extender/v1``, the same types
in 1.35 and 1.36. Candidates with empty victim lists come with kubernetes#135486; a Go nil
slice is written ``null``.

::

    r1-0  r1-1      one bound gang of two on r1-0, strangers on r1-1
"""

import json
from collections.abc import AsyncIterator
from dataclasses import dataclass

import pytest
from support.extenders.extenders import PODS, World, go_pod, until, world

from loadtest.testbed.client.pods import Gang, pod
from muster.kube.translation.translate import pod_uid

ONE = "11111111-1111-4111-8111-111111111111"
TWO = "22222222-2222-4222-8222-222222222222"
VICTIM = '{"metadata":{"name":"v","namespace":"x","uid":"%s"},"spec":{},"status":{}}'


@dataclass
class Case:
    """``preemptor`` as JSON text; ``member``: UID of a member of a gang that must not break."""

    cluster: World
    preemptor: str
    member: str

    async def send(self, body: str) -> dict[str, object]:
        """Send a body with PREEMPTOR and MEMBER put in, and return the whole reply."""
        data = body.replace("PREEMPTOR", self.preemptor).replace("MEMBER", self.member)
        async with self.cluster.http.post("/v1/extender/preempt", data=data) as response:
            assert response.status == 200, await response.text()
            reply: dict[str, object] = await response.json()
            return reply


@pytest.fixture
async def case() -> AsyncIterator[Case]:
    async with world(spare_count=0) as cluster:
        await cluster.nodes({"r1": 2})
        members = await cluster.gang(Gang("train", 2, gpus=1))
        for name, node in (await cluster.released(["train-0", "train-1"])).items():
            await cluster.bind(name, node)
        urgent = await cluster.api.create(PODS, pod("urgent"))
        uid = pod_uid(urgent["metadata"]["uid"])
        await until(lambda: cluster.extender.engine.state.pod_row(uid) is not None)
        text = json.dumps(go_pod(urgent), separators=(",", ":"))
        yield Case(cluster, text, members[0]["metadata"]["uid"])


def meta(**victims: tuple[int, list[str]]) -> dict[str, object]:
    """Return the reply that names these candidates, written like n1 for r1-1."""
    return {
        "NodeNameToMetaVictims": {
            name.replace("n", "r1-"): {
                "Pods": [{"UID": uid} for uid in uids],
                "NumPDBViolations": violations,
            }
            for name, (violations, uids) in victims.items()
        }
    }


async def test_victims_by_uid(case: Case) -> None:
    """nodeCacheCapable: true."""
    body = (
        '{"Pod":PREEMPTOR,"NodeNameToVictims":null,"NodeNameToMetaVictims":{'
        f'"r1-0":{{"Pods":[{{"UID":"{ONE}"}},{{"UID":"MEMBER"}}],"NumPDBViolations":0}},'
        f'"r1-1":{{"Pods":[{{"UID":"{ONE}"}},{{"UID":"{TWO}"}}],"NumPDBViolations":1}}}}}}\n'
    )
    assert await case.send(body) == meta(n1=(1, [ONE, TWO]))


async def test_victims_in_full(case: Case) -> None:
    """nodeCacheCapable: false; the reply names them by UID all the same."""
    body = (
        '{"Pod":PREEMPTOR,"NodeNameToVictims":{'
        f'"r1-0":{{"Pods":[{VICTIM % "MEMBER"}],"NumPDBViolations":0}},'
        f'"r1-1":{{"Pods":[{VICTIM % ONE},{VICTIM % TWO}],"NumPDBViolations":0}}}},'
        '"NodeNameToMetaVictims":null}\n'
    )
    assert await case.send(body) == meta(n1=(0, [ONE, TWO]))


@pytest.mark.parametrize("pods", ["null", "[]"])
@pytest.mark.parametrize("form", ["NodeNameToVictims", "NodeNameToMetaVictims"])
async def test_candidates_with_an_empty_list_of_victims(case: Case, form: str, pods: str) -> None:
    body = (
        f'{{"Pod":PREEMPTOR,"{form}":{{"r1-0":{{"Pods":{pods},"NumPDBViolations":0}},'
        '"r1-1":null}}\n'
    )
    assert await case.send(body) == meta(n0=(0, []), n1=(0, []))


async def test_no_candidates_at_all(case: Case) -> None:
    body = '{"Pod":PREEMPTOR,"NodeNameToVictims":null,"NodeNameToMetaVictims":null}\n'
    assert await case.send(body) == meta()


async def test_keys_in_lower_case_and_fields_of_later_versions(case: Case) -> None:
    body = (
        '{"pod":PREEMPTOR,"extra":{"a":[1]},"nodeNameToMetaVictims":{'
        f'"r1-1":{{"pods":[{{"uid":"{ONE}","more":true}}],"numPDBViolations":3}}}}}}'
    )
    assert await case.send(body) == meta(n1=(3, [ONE]))


async def test_every_candidate_dropped_is_an_empty_object_and_not_null(case: Case) -> None:
    """Go reads null as no answer at all."""
    body = (
        '{"Pod":PREEMPTOR,"NodeNameToVictims":null,"NodeNameToMetaVictims":{'
        '"r1-0":{"Pods":[{"UID":"MEMBER"}],"NumPDBViolations":0}}}\n'
    )
    assert await case.send(body) == {"NodeNameToMetaVictims": {}}
