"""What is known of owners while they change, are replaced, and the API server comes and goes.

::

    pod ─► replica set i of the moment ─► deployment, whose label counts its changes
"""

import asyncio
import json

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from muster.kube import wire
from muster.kube.errors import NotFound, Status, TransportError
from muster.kube.http.transport import HttpRequest
from webhook.facts.owners import KEEP_S, OwnerLookup

KINDS = [
    {"name": "deployments", "kind": "Deployment", "namespaced": True},
    {"name": "replicasets", "kind": "ReplicaSet", "namespaced": True},
]
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("wait"), st.sampled_from([0.1, 1.0, KEEP_S, 60.0])),
        st.tuples(st.sampled_from(["label", "rollout", "pods", "pods", "away", "back"]), st.none()),
    ),
    max_size=25,
)


class Cluster:
    """``label``: of the Deployment; ``labelled``: when it got which, the latest last."""

    def __init__(self) -> None:
        self.now, self.away, self.label, self.revision = 1000.0, False, 0, 1
        self.labelled = [(self.now, 0)]
        self.lookup = OwnerLookup(self.send, deadline_s=60, at_most=3, clock=lambda: self.now)

    async def send(self, request: HttpRequest) -> bytes:
        await asyncio.sleep(0)
        if self.away:
            raise TransportError("away")
        if request.path == "/apis/apps/v1":
            return json.dumps({"resources": KINDS}).encode()
        name = request.path.rpartition("/")[2]
        if name == "web":
            meta = {"name": name, "uid": "d", "labels": {"n": str(self.label)}}
        elif name == f"web-{self.revision}":
            meta = {"name": name, "uid": name, "ownerReferences": [_reference("Deployment", "d")]}
        else:
            raise NotFound(404, Status(message=name))
        return json.dumps({"metadata": meta}).encode()

    async def pods(self) -> list[int | None]:
        """Create three at once; return the label that is known for each."""
        found = await asyncio.gather(*(self._pod() for _ in range(3)))
        assert not self.lookup.waiting
        return list(found)

    async def _pod(self) -> int | None:
        own = _reference("ReplicaSet", f"web-{self.revision}")
        meta = msgspec.convert({"ownerReferences": [own]}, wire.ObjectMeta)
        owners = await self.lookup.above(meta, "n")
        return int(owners["d"].labels["n"]) if "d" in owners else None

    def oldest(self) -> int:
        """Return the oldest label that may still be believed."""
        before = [label for at, label in self.labelled if at < self.now - KEEP_S]
        return before[-1] if before else 0


def _reference(kind: str, uid: str) -> dict[str, object]:
    name = "web" if kind == "Deployment" else uid
    return {"apiVersion": "apps/v1", "kind": kind, "name": name, "uid": uid, "controller": True}


@given(STEPS)
def test_nothing_older_than_its_time_is_believed_and_a_rollout_sees_the_present(
    steps: list[tuple[str, float | None]],
) -> None:
    asyncio.run(_live(steps))


async def _live(steps: list[tuple[str, float | None]]) -> None:
    cluster, rolled_out, uncertain_until = Cluster(), True, 0.0
    for step, seconds in steps:
        match step:
            case "wait":
                cluster.now += seconds or 0.0
            case "label":
                cluster.label += 1
                cluster.labelled.append((cluster.now, cluster.label))
            case "rollout":
                cluster.now += 0.001
                cluster.revision += 1
                rolled_out = True
            case "away":
                cluster.away = True
            case "back" if cluster.away:
                cluster.away, uncertain_until = False, cluster.now + KEEP_S
            case "pods":
                known = await cluster.pods()
                certain = not cluster.away and cluster.now > uncertain_until
                _believable(cluster, known, certain=certain, rolled_out=rolled_out)
                rolled_out = False
            case _:
                pass


def _believable(
    cluster: Cluster, known: list[int | None], *, certain: bool, rolled_out: bool
) -> None:
    """Nobody may know the future; where the API server answers, nothing too old either."""
    if certain and rolled_out:
        assert known == [cluster.label] * 3
    for label in known:
        assert label is not None or not certain
        assert label is None or label <= cluster.label
        assert label is None or not certain or label >= cluster.oldest()
