"""Keeping up with who has which devices, with a kubelet that comes and goes."""

import logging
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from grpc import aio
from support.machine.shortpath import short_folder

from deviceplugin.handshake.holders import Holders
from deviceplugin.handshake.podresources import PodResources, PodResourcesError
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


def nobody(_namespace: str, _name: str) -> bool:
    return False


async def test_listeners_get_what_changes_and_no_order_of_the_kubelets() -> None:
    kubelet, heard, failures = Kubelet(), [], []
    with short_folder() as folder:
        client = PodResources(folder / "k.sock")
        holders = Holders(client, lambda: failures.append(1), nobody)
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
        holders = Holders(client, lambda: failures.append(1), nobody)
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


async def test_a_kubelet_that_has_just_started_takes_nothing_from_pods_that_live() -> None:
    """It lists a pod when it has admitted it again; "gone" was deleted while it was away."""
    kubelet, living = Kubelet(), {"a", "b"}
    kubelet.pods = {"a": ["GPU-0"], "b": ["GPU-1"], "gone": ["GPU-2"]}
    with short_folder() as folder:
        client = PodResources(folder / "k.sock")
        holders = Holders(client, lambda: None, lambda _namespace, name: name in living)
        async with serving(kubelet, folder / "k.sock"):
            await holders.look()
        before = client.kubelet
        async with serving(kubelet, folder / "k.sock"):
            kubelet.pods = {}
            await holders.look()
            assert client.kubelet != before
            assert holders.last == (held("a", "GPU-0"), held("b", "GPU-1"))
            kubelet.pods = {"a": ["GPU-0"]}
            await holders.look()
            assert holders.last == (held("a", "GPU-0"), held("b", "GPU-1"))
            kubelet.pods = {}
            living.remove("b")
            await holders.look()
            assert holders.last == ()  # "a" was listed by this one, and has ended
        await client.close()


async def test_an_answer_of_a_kubelet_that_was_replaced_meanwhile_is_none() -> None:
    with short_folder() as folder:
        client = PodResources(folder / "k.sock")

        class Replaced(Kubelet):
            async def List(self, request: object, context: object) -> pb.ListPodResourcesResponse:
                (folder / "new.sock").unlink(missing_ok=True)
                with socket.socket(socket.AF_UNIX) as new:
                    new.bind(str(folder / "new.sock"))
                (folder / "new.sock").rename(folder / "k.sock")
                return await super().List(request, context)

        async with serving(Replaced(), folder / "k.sock"):
            with pytest.raises(PodResourcesError, match="has restarted"):
                await client.list()
        assert client.kubelet is None
        await client.close()
