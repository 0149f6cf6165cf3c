"""What the simulated API server answers lists in."""

import pytest

from loadtest.testbed.client import pods
from loadtest.testbed.standins.apiserver.requests import wants_packed
from loadtest.testbed.standins.simulated import SimulatedPlane
from muster.kube.client import KubeClient
from muster.kube.firstlist.decoders import COLUMNS, LISTED_PODS
from muster.kube.firstlist.podpage import PackedPage
from muster.kube.http import auth
from muster.kube.http.mediatypes import PROTOBUF

POD_PATH = "/api/v1/namespaces/default/pods"


@pytest.mark.parametrize(
    ("accept", "packed"),
    [
        ("", False),
        ("application/json", False),
        (PROTOBUF, True),
        (f"{PROTOBUF},application/json", True),
        (f"application/json, {PROTOBUF}", False),
        (f"application/json;as=Table, {PROTOBUF}, application/json", True),
        (f"{PROTOBUF};as=PartialObjectMetadataList,application/json", False),
    ],
)
def test_protobuf_is_wanted_where_it_comes_before_json(accept: str, packed: bool) -> None:  # noqa: FBT001  what is expected
    assert wants_packed(accept) is packed


async def test_a_list_comes_in_protobuf_unless_an_object_has_a_field_of_no_known_number() -> None:
    odd = pods.pod("odd")
    odd["spec"]["notYetKnown"] = 1
    async with SimulatedPlane() as plane, plane.api("admin") as api:
        identity = auth.load(plane.kubeconfig())
        async with KubeClient(identity, packed=COLUMNS) as client:
            for name in ("p0", "p1"):
                await api.create(POD_PATH, pods.pod(name))
            assert await listed(client) == {"p0": True, "p1": True}
            await api.create(POD_PATH, odd)
            assert await listed(client) == {"odd": False, "p0": False, "p1": False}
            await api.delete(f"{POD_PATH}/odd")
            await api.patch(f"{POD_PATH}/p1", {"metadata": {"labels": {"a": "b"}}})
            assert await listed(client) == {"p0": True, "p1": True}
            (page,) = [page.items async for page in client.pages(LISTED_PODS)]
            assert isinstance(page, PackedPage)
            assert page.pod(1).metadata.labels == {"a": "b"}


async def listed(client: KubeClient) -> dict[str, bool]:
    """Return the names of all pods, and whether they were told in protobuf."""
    found = dict[str, bool]()
    async for page in client.pages(LISTED_PODS):
        in_protobuf = isinstance(page.items, PackedPage)
        for pod in page.items:
            found[pod.metadata.name] = in_protobuf
    return found
