"""The pod-resources client against a real gRPC server on a socket, as the kubelet answers."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest
from grpc import aio

from deviceplugin.handshake.podresources import PodResources, PodResourcesError
from deviceplugin.model.holdings import ContainerHolding, device_of, holders
from muster.protogen import podresources_v1_pb2 as pb
from muster.protogen.podresources_v1_pb2_grpc import (
    PodResourcesListerServicer,
    add_PodResourcesListerServicer_to_server,
)

GPU, NIC = "nvidia.com/gpu", "rdma/hca"


def pod(name: str, *entries: tuple[str, str]) -> pb.PodResources:
    devices = [pb.ContainerDevices(resource_name=r, device_ids=[i]) for r, i in entries]
    containers = [
        pb.ContainerResources(name="idle"),
        pb.ContainerResources(name="main", devices=devices),
    ]
    return pb.PodResources(name=name, namespace="team", containers=containers)


class Kubelet(PodResourcesListerServicer):
    """``get``: how it answers Get: a status code, or None for an answer."""

    def __init__(self, *pods: pb.PodResources, get: grpc.StatusCode | None = None) -> None:
        self.pods, self.get, self.slow_s = pods, get, 0.0

    async def List(self, _request: Any, _context: Any) -> pb.ListPodResourcesResponse:
        await asyncio.sleep(self.slow_s)
        return pb.ListPodResourcesResponse(pod_resources=self.pods)

    async def Get(self, request: Any, context: Any) -> pb.GetPodResourcesResponse:
        if self.get is not None:
            await context.abort(self.get, "no")
        found = next((p for p in self.pods if p.name == request.pod_name), None)
        if found is None:
            await context.abort(grpc.StatusCode.NOT_FOUND, "no such pod")
        return pb.GetPodResourcesResponse(pod_resources=found)


@asynccontextmanager
async def serving(kubelet: Kubelet, socket: Path) -> AsyncIterator[None]:
    server = aio.server()
    add_PodResourcesListerServicer_to_server(kubelet, server)
    server.add_insecure_port(f"unix:{socket}")
    await server.start()
    try:
        yield
    finally:
        await server.stop(None)  # removes its socket


@pytest.fixture
async def client(tmp_path: Path) -> AsyncIterator[PodResources]:
    made = PodResources(tmp_path / "k.sock", timeout_s=5)
    yield made
    await made.close()


async def test_entries_of_one_resource_are_merged(client: PodResources, tmp_path: Path) -> None:
    kubelet = Kubelet(pod("a", (GPU, "GPU-1"), (NIC, "mlx5_0"), (GPU, "GPU-0::3")))
    async with serving(kubelet, tmp_path / "k.sock"):
        assert await client.list() == (
            ContainerHolding("team", "a", "main", {GPU: ("GPU-1", "GPU-0::3"), NIC: ("mlx5_0",)}),
        )


async def test_a_kubelet_without_the_api_is_distinguished_from_an_empty_one(
    client: PodResources, tmp_path: Path
) -> None:
    with pytest.raises(PodResourcesError, match="is no socket"):
        await client.list()
    async with serving(Kubelet(), tmp_path / "k.sock"):
        assert await client.list() == ()


async def test_after_a_restart_of_the_kubelet_the_first_question_is_answered(
    client: PodResources, tmp_path: Path
) -> None:
    socket = tmp_path / "k.sock"
    async with serving(Kubelet(pod("a", (GPU, "GPU-1"))), socket):
        assert len(await client.list()) == 1
    with pytest.raises(PodResourcesError):
        await client.list()
    async with serving(Kubelet(pod("b", (GPU, "GPU-1"))), socket):
        assert [held.pod for held in await client.list()] == ["b"]


async def test_a_restart_that_no_question_saw_fails_no_question(
    client: PodResources, tmp_path: Path
) -> None:
    socket = tmp_path / "k.sock"
    async with serving(Kubelet(pod("a", (GPU, "GPU-1"))), tmp_path / "first.sock"):
        socket.symlink_to(tmp_path / "first.sock")
        assert len(await client.list()) == 1
        async with serving(Kubelet(pod("b", (GPU, "GPU-1"))), tmp_path / "second.sock"):
            socket.unlink()
            socket.symlink_to(tmp_path / "second.sock")
            assert [held.pod for held in await client.list()] == ["b"]


async def test_a_socket_that_nobody_serves_is_an_error_and_the_next_dial_a_new_one(
    client: PodResources, tmp_path: Path
) -> None:
    socket = tmp_path / "k.sock"
    async with serving(Kubelet(), tmp_path / "other.sock"):
        (tmp_path / "other.sock").rename(socket)
    with pytest.raises(PodResourcesError, match="List: UNAVAILABLE"):
        await client.list()
    socket.unlink()
    async with serving(Kubelet(), socket):
        assert await client.list() == ()


async def test_a_kubelet_that_never_answers_is_given_up(tmp_path: Path) -> None:
    kubelet = Kubelet()
    kubelet.slow_s = 60
    client = PodResources(tmp_path / "k.sock", timeout_s=0.05)
    async with serving(kubelet, tmp_path / "k.sock"):
        with pytest.raises(PodResourcesError, match="DEADLINE_EXCEEDED"):
            await client.list()
        kubelet.slow_s = 0
        assert await PodResources(tmp_path / "k.sock").list() == ()
    await client.close()


@pytest.mark.parametrize("refusal", [None, grpc.StatusCode.UNIMPLEMENTED, grpc.StatusCode.UNKNOWN])
async def test_one_pod_is_found_whether_or_not_the_kubelet_serves_get(
    client: PodResources, tmp_path: Path, refusal: grpc.StatusCode | None
) -> None:
    pods = pod("a", (GPU, "GPU-1")), pod("b", (GPU, "GPU-2"))
    async with serving(Kubelet(*pods, get=refusal), tmp_path / "k.sock"):
        assert [held.devices for held in await client.get("team", "b")] == [{GPU: ("GPU-2",)}]
        assert await client.get("team", "nobody") == ()


async def test_other_refusals_of_get_are_errors(client: PodResources, tmp_path: Path) -> None:
    kubelet = Kubelet(get=grpc.StatusCode.PERMISSION_DENIED)
    async with serving(kubelet, tmp_path / "k.sock"):
        with pytest.raises(PodResourcesError, match="Get: PERMISSION_DENIED: no"):
            await client.get("team", "a")


def test_replicas_and_shares_of_memory_are_their_device() -> None:
    one = ContainerHolding("n", "p", "c", {GPU: ("GPU-1::0", "GPU-1::1"), NIC: ("mlx5_0",)})
    other = ContainerHolding("n", "q", "c", {GPU: ("GPU-1::2", "GPU-2::mem7")})
    assert holders([one, other]) == {
        "GPU-1": (one, other),
        "mlx5_0": (one,),
        "GPU-2": (other,),
    }
    assert device_of("MIG-9") == "MIG-9"
