"""Plans that do not count are taken off; one that stays does not keep the others from it."""

import json
from typing import Any, Self

from extender.releases.forgedplans import ForgedPlans
from muster.cluster.ids import PodUid
from muster.kube.client import KubeClient
from muster.kube.errors import from_response
from muster.kube.http import auth
from muster.kube.http.transport import HttpRequest
from muster.kube.names import PLAN
from muster.kube.writing.podwrites import PodRef

BOUND, GONE, OTHER = "bound", "gone", "other"


class Pods:
    """A connection to an API server with pods; ``refuses``: names of those it does not change."""

    def __init__(self, refuses: str = "") -> None:
        self.refuses = refuses
        self.patched: list[tuple[str, Any]] = []

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        return

    async def send(self, request: HttpRequest) -> bytes:
        name = request.path.rpartition("/")[2]
        if name == GONE:
            raise from_response(404, b"{}")
        uid = "another" if name == OTHER else f"uid-{name}"
        meta = {"name": name, "namespace": "ns", "uid": uid, "resourceVersion": "7"}
        if request.method == "PATCH":
            if name == self.refuses:
                raise from_response(500, b"{}")
            assert request.body is not None
            self.patched.append((name, json.loads(request.body)["metadata"]))
        spec = {"nodeName": "n1"} if name == BOUND else {}
        return json.dumps({"metadata": meta, "spec": spec}).encode()


def noted(server: Any, *names: str) -> ForgedPlans:
    found = ForgedPlans(KubeClient(auth.fixed("http://127.0.0.1:1"), transport=server))
    for name in names:
        found.put(PodUid(name.encode()), PodRef("ns", name, f"uid-{name}"))
    return found


async def test_the_plan_is_taken_off_the_version_that_was_read() -> None:
    server = Pods()
    forged = noted(server, "mine")
    await forged.look()
    expected = {"uid": "uid-mine", "resourceVersion": "7", "annotations": {PLAN: None}}
    assert server.patched == [("mine", expected)]
    assert len(forged) == 0


async def test_a_pod_that_is_bound_or_gone_or_another_one_by_now_is_left_alone() -> None:
    server = Pods()
    forged = noted(server, BOUND, GONE, OTHER)
    await forged.look()
    assert server.patched == []
    assert len(forged) == 0


async def test_a_plan_that_stays_is_tried_again_after_the_others() -> None:
    server = Pods(refuses="first")
    forged = noted(server, "first", "second")
    await forged.look()
    assert server.patched == []
    await forged.look()
    assert [name for name, _ in server.patched] == ["second"]
    assert len(forged) == 1
    server.refuses = ""
    await forged.look()
    assert len(forged) == 0
