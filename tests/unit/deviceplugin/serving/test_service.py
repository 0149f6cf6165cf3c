"""The device plugin API over a real socket: what the kubelet is told in each case."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import grpc
import pytest
from grpc import aio
from hypothesis import given
from hypothesis import strategies as st
from support.devices.served import CallLog
from support.machine.shortpath import short_folder
from support.webhooks.plainview import PlainView, variable, view

from deviceplugin.errors import AllocationRefused, RefusalCause
from deviceplugin.model.answers import ContainerAnswer, DeviceFile, Mount, ShownDevice
from deviceplugin.serving import fallback, wire
from deviceplugin.serving.resource import ResourceServer, SocketPlace
from muster.protogen import deviceplugin_v1beta1_pb2 as pb
from muster.protogen.deviceplugin_v1beta1_pb2_grpc import DevicePluginStub

GPU = "nvidia.com/gpu"
IDS = st.lists(st.sampled_from("abcdef"), unique=True)


@asynccontextmanager
async def stub_of(shown: PlainView) -> AsyncIterator[DevicePluginStub]:
    """Serve a view without a kubelet, and call it."""
    with short_folder() as folder:
        server = ResourceServer(shown, SocketPlace(folder, "t"), CallLog())
        running = asyncio.create_task(server.run())
        async with asyncio.timeout(20):
            while not (found := list(folder.glob("muster-*"))):  # noqa: ASYNC110
                await asyncio.sleep(0.005)
        async with aio.insecure_channel(f"unix:{found[0]}") as channel:
            yield DevicePluginStub(channel)
        running.cancel()
        await asyncio.wait([running])


def allocating(*containers: list[str]) -> pb.AllocateRequest:
    request = pb.AllocateRequest()
    for ids in containers:
        request.container_requests.add(devices_ids=ids)
    return request


async def test_each_of_several_containers_is_answered_for_itself() -> None:
    async with stub_of(view(GPU, "abc")) as stub:
        answer = await stub.Allocate(allocating(["a"], ["c", "b"]))
        assert [each.envs[variable(GPU)] for each in answer.container_responses] == ["a", "b,c"]


@pytest.mark.parametrize("cause", list(RefusalCause))
async def test_a_refusal_has_the_status_of_its_cause_and_its_words_whole(
    cause: RefusalCause,
) -> None:
    class Refusing(PlainView):
        def allocate(self, ids: tuple[str, ...]) -> ContainerAnswer:
            raise AllocationRefused(cause, f"{ids[0]}: näher erklärt: {'x' * 300}")

    async with stub_of(Refusing()) as stub:
        with pytest.raises(aio.AioRpcError) as refused:
            await stub.Allocate(allocating(["a"]))
        assert refused.value.code() is wire.STATUS[cause]
        assert refused.value.details() == f"a: näher erklärt: {'x' * 300}"


def test_every_cause_has_a_status_of_its_own() -> None:
    assert wire.STATUS.keys() == set(RefusalCause)
    assert len(set(wire.STATUS.values())) == len(RefusalCause)


async def test_a_defect_of_ours_is_internal_and_named() -> None:
    one = view(GPU, "ab")
    one.breaks = True
    async with stub_of(one) as stub:
        with pytest.raises(aio.AioRpcError, match="the view is broken") as failed:
            await stub.Allocate(allocating(["a"]))
        assert failed.value.code() is grpc.StatusCode.INTERNAL


async def test_where_the_first_container_is_given_and_the_second_refused_all_are_refused() -> None:
    async with stub_of(view(GPU, "ab")) as stub:
        with pytest.raises(aio.AioRpcError, match="z: is no device"):
            await stub.Allocate(allocating(["a"], ["z"]))


async def test_a_choice_that_is_not_valid_is_replaced_by_one_that_is() -> None:
    class Wrong(PlainView):
        def preferred(
            self, available: tuple[str, ...], must_include: tuple[str, ...], size: int
        ) -> tuple[str, ...]:
            del must_include, size
            return (*available, "of nowhere")

    async with stub_of(Wrong()) as stub:
        request = pb.PreferredAllocationRequest()
        request.container_requests.add(
            available_deviceIDs=["c", "b", "a"], must_include_deviceIDs=["c"], allocation_size=2
        )
        (chosen,) = (await stub.GetPreferredAllocation(request)).container_responses
        assert list(chosen.deviceIDs) == ["c", "a"]


async def test_pre_start_is_called_and_refused_with_the_cause_s_status() -> None:
    one = view(GPU, "ab")
    async with stub_of(one) as stub:
        await stub.PreStartContainer(pb.PreStartContainerRequest(devices_ids=["a"]))
        assert one.started == [("a",)]
        one.breaks = True
        with pytest.raises(aio.AioRpcError) as refused:
            await stub.PreStartContainer(pb.PreStartContainerRequest(devices_ids=["a"]))
        assert refused.value.code() is wire.STATUS[RefusalCause.TAKEN]


@given(available=IDS, must=IDS, size=st.integers(-1, 8))
def test_the_plain_choice_is_valid_whenever_there_is_a_valid_one(
    available: list[str], must: list[str], size: int
) -> None:
    chosen = fallback.plain(available, must, size)
    assert len(set(chosen)) == len(chosen)
    assert set(chosen) <= {*available, *must}
    if len(must) <= size <= len({*available, *must}):
        assert fallback.is_valid(chosen, available, must, size)


def test_an_answer_loses_nothing_on_its_way() -> None:
    message = wire.answer(
        ContainerAnswer(
            envs={"A": "b"},
            mounts=(Mount("/in", "/out", read_only=False),),
            files=(DeviceFile("/dev/a", "/dev/b", "rwm"),),
            annotations={"x": "y"},
            cdi=("v/c=n",),
        )
    )
    (mount,), (file,) = message.mounts, message.devices
    assert (mount.container_path, mount.host_path, mount.read_only) == ("/in", "/out", False)
    assert (file.container_path, file.host_path, file.permissions) == ("/dev/a", "/dev/b", "rwm")
    assert (dict(message.envs), dict(message.annotations)) == ({"A": "b"}, {"x": "y"})
    assert [each.name for each in message.cdi_devices] == ["v/c=n"]


def test_a_device_without_numa_nodes_has_no_topology() -> None:
    with_numa, without = wire.listing((ShownDevice("a", numa=(0, 1)), ShownDevice("b"))).devices
    assert [node.ID for node in with_numa.topology.nodes] == [0, 1]
    assert not without.HasField("topology")
