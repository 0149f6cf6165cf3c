"""Keeping up with who has which devices, with a kubelet that comes and goes."""

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from grpc import aio
from support.machine.shortpath import short_folder

from deviceplugin.handshake.holders import Holders
from deviceplugin.handshake.podresources import PodResources
from deviceplugin.model.holdings import ContainerHolding
from muster.protogen import podresources_v1_pb2 as pb
from muster.protogen.podresources_v1_pb2_grpc import (
    PodResourcesListerServicer,
    add_PodResourcesListerServicer_to_server,
)

GPU = "nvidia.com/gpu"


class Kubelet(PodResourcesListerServicer):
    """``pods``: name → devices, listed in the order given."""

    def __init__(self) -> None:
        self.pods: dict[str, list[str]] = {}
        self.asked = 0

    async def List(self, _request: object, _context: object) -> pb.ListPodResourcesResponse:
        self.asked += 1
        return pb.ListPodResourcesResponse(
            pod_resources=[
                pb.PodResources(
                    name=name,
                    namespace="team",
                    containers=[
                        pb.ContainerResources(
                            name="main",
                            devices=[
                                pb.ContainerDevices(resource_name=GPU, device_ids=[id_])
                                for id_ in ids
                            ],
                        )
                    ],
                )
                for name, ids in self.pods.items()
            ]
        )


@asynccontextmanager
async def serving(kubelet: Kubelet, socket: Path) -> AsyncIterator[None]:
    server = aio.server()
    add_PodResourcesListerServicer_to_server(kubelet, server)
    server.add_insecure_port(f"unix:{socket}")
    await server.start()
    try:
        yield
    finally:
        await server.stop(None)


def held(pod: str, *ids: str) -> ContainerHolding:
    return ContainerHolding("team", pod, "main", {GPU: ids})


async def test_listeners_get_what_changes_and_no_order_of_the_kubelets() -> None:
    kubelet, heard, failures = Kubelet(), [], []
    with short_folder() as folder:
        client = PodResources(folder / "k.sock")
        holders = Holders(client, lambda: failures.append(1))
        holders.listen(heard.append)
        async with serving(kubelet, folder / "k.sock"):
            await holders.look()
            kubelet.pods = {"b": ["GPU-2", "GPU-1"], "a": ["GPU-0"]}
            await holders.look()
            kubelet.pods = {"a": ["GPU-0"], "b": ["GPU-1", "GPU-2"]}
            await holders.look()
            await client.close()
    assert heard == [(), (held("a", "GPU-0"), held("b", "GPU-1", "GPU-2"))]
    assert failures == []


async def test_a_kubelet_that_is_away_leaves_the_last_answer_and_is_logged_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    kubelet, failures = Kubelet(), []
    kubelet.pods = {"a": ["GPU-0"]}
    with caplog.at_level(logging.INFO), short_folder() as folder:
        client = PodResources(folder / "k.sock")
        holders = Holders(client, lambda: failures.append(1))
        await holders.look()
        await holders.look()
        assert (holders.last, len(failures)) == (None, 2)
        assert holders.problem is not None
        assert "is no socket" in holders.problem
        async with serving(kubelet, folder / "k.sock"):
            await holders.look()
        assert holders.problem is None
        await holders.look()
        assert holders.last == (held("a", "GPU-0"),)
        await client.close()
    reported = [r.message for r in caplog.records if r.name == "deviceplugin.handshake.holders"]
    assert reported == [
        "not known which containers have which devices",
        "the kubelet lists which containers have which devices",
        "not known which containers have which devices",
    ]
