"""What users complain of in device plugins (research: registration, restarts, updates).

::

    gpu-0 … gpu-7        mlx5_0 … mlx5_3
"""

import asyncio
import socket
import time

import pytest
from support.devices.served import Node, eventually, node
from support.kubelets.fakekubelet import AdmissionError, asking
from support.webhooks.plainview import PlainView, variable, view

from deviceplugin.model.answers import ShownDevice
from deviceplugin.serving import drift
from deviceplugin.serving.lifecycle import PATIENCE_S, STEADY_S

GPU, NIC = "nvidia.com/gpu", "rdma/hca"


def gpus() -> PlainView:
    return view(GPU, [f"gpu-{number}" for number in range(8)])


def nics() -> PlainView:
    return view(NIC, [f"mlx5_{number}" for number in range(4)])


def registrations(it: Node) -> list[str]:
    return [resource for resource, _ in it.kubelet.registered()]


async def test_several_resources_of_one_process_register_each_on_a_socket_of_its_own() -> None:
    async with node() as it:
        one, other = gpus(), nics()
        it.serve(one, other)
        await it.shown(one, other)
        assert sorted(registrations(it)) == [GPU, NIC]
        assert len({endpoint for _, endpoint in it.kubelet.registered()}) == 2
        options = await it.kubelet.run(asking("a", {GPU: 2, NIC: 1}))
        assert options.envs == {variable(GPU): "gpu-6,gpu-7", variable(NIC): "mlx5_3"}


async def test_a_plugin_that_is_there_before_the_kubelet_registers_as_soon_as_that_listens() -> (
    None
):
    async with node(kubelet_runs=False) as it:
        one = gpus()
        instance = it.serve(one)
        await eventually(lambda: bool(instance.sockets()))
        await it.kubelet.start()  # removes every socket, as the real one does
        await it.shown(one)


async def test_after_a_restart_of_the_kubelet_it_registers_again_and_pods_keep_their_devices() -> (
    None
):
    async with node() as it:
        one, other = gpus(), nics()
        instance = it.serve(one, other)
        await it.shown(one, other)
        pod = asking("a", {GPU: 3, NIC: 1})
        before = await it.kubelet.run(pod)
        sockets = instance.sockets()
        for _ in range(3):
            await it.kubelet.restart()
            await it.shown(one, other)
            assert await it.kubelet.start_container(pod) == before
        assert not set(sockets) & set(instance.sockets())
        assert one.allocated == [tuple(each) for each in one.allocated]
        assert len(one.allocated) == 1  # what the container was answered once holds for ever


async def test_a_kubelet_that_was_killed_is_registered_with_when_it_is_back() -> None:
    async with node() as it:
        one = gpus()
        it.serve(one)
        await it.shown(one)
        await it.kubelet.kill()
        await it.kubelet.start()
        await it.shown(one)


async def test_a_removed_socket_is_made_anew_without_a_restart_of_the_plugin() -> None:
    async with node() as it:
        one = gpus()
        instance = it.serve(one)
        await it.shown(one)
        (old,) = instance.sockets()
        old.unlink()
        await eventually(lambda: instance.sockets() not in ([], [old]))
        await eventually(lambda: len(registrations(it)) == 2)
        await it.shown(one)
        await it.kubelet.run(asking("a", {GPU: 8}))


async def test_a_folder_that_is_removed_and_made_again_is_served_again() -> None:
    async with node() as it:
        one = gpus()
        it.serve(one)
        await it.shown(one)
        await it.kubelet.stop()
        for path in it.kubelet.folder.iterdir():
            path.unlink()
        it.kubelet.folder.rmdir()
        await asyncio.sleep(0)
        await it.kubelet.start()
        await it.shown(one)


async def test_a_rolling_update_with_two_instances_leaves_the_resource_as_it_was() -> None:
    async with node() as it:
        one = gpus()
        old = it.serve(one, start="old")
        await it.shown(one)
        new = it.serve(one, start="new")
        await eventually(lambda: len(registrations(it)) == 2)
        await it.shown(one)
        assert old.sockets()
        assert new.sockets()
        await old.end()
        # The end of the old stream cuts the new one off too: the kubelet's own defect.
        await eventually(lambda: len(registrations(it)) >= 3)
        await it.shown(one)
        assert not old.sockets()
        await it.kubelet.run(asking("a", {GPU: 8}))


async def test_a_kubelet_that_never_answers_hangs_nothing() -> None:
    async with node() as it:
        it.kubelet.moods.talking.clear()
        one, other = gpus(), nics()
        instance = it.serve(one, other)
        await eventually(lambda: len(registrations(it)) == 2)
        assert set(instance.servers.problems()) == {GPU, NIC}
        one.put(ShownDevice("gpu-0", healthy=False))
        instance.servers.changed()
        await it.kubelet.restart()  # the next one is silent too, and asked all the same
        await eventually(lambda: len(registrations(it)) == 2)
        it.kubelet.moods.talking.set()
        await it.shown(one, other)
        assert instance.servers.problems() == {}


async def test_it_ends_although_the_kubelet_never_answers() -> None:
    async with node() as it:
        it.kubelet.moods.talking.clear()
        instance = it.serve(gpus())
        await eventually(lambda: registrations(it) == [GPU])
        await instance.end()
        assert instance.sockets() == []
        it.kubelet.moods.talking.set()


async def test_a_kubelet_that_refuses_is_asked_again_and_its_words_are_reported() -> None:
    async with node() as it:
        it.kubelet.moods.refuses = "not today"
        one = gpus()
        instance = it.serve(one)
        await eventually(lambda: "not today" in instance.servers.problems().get(GPU, ""))
        await eventually(lambda: len(registrations(it)) >= 3)
        it.kubelet.moods.refuses = ""
        await it.shown(one)


async def test_two_readers_get_the_same_list_and_the_end_of_both_is_clean() -> None:
    async with node() as it:
        one = gpus()
        instance = it.serve(one)
        await it.shown(one)
        first = it.kubelet.clients()[GPU]
        ((resource, endpoint),) = it.kubelet.registered()
        await it.kubelet._plugins.connect(resource, it.kubelet.folder / endpoint)
        second = it.kubelet.clients()[GPU]
        await eventually(lambda: second.messages == 1)
        one.put(ShownDevice("gpu-0", healthy=False))
        instance.servers.changed()
        await eventually(lambda: (first.messages, second.messages) == (2, 2))
        await instance.end()
        await it.kubelet.until_allocatable(GPU, 0)


async def test_many_faults_at_once_are_one_message() -> None:
    async with node() as it:
        one = gpus()
        instance = it.serve(one)
        await it.shown(one)
        client = it.kubelet.clients()[GPU]
        for number in range(8):
            one.put(ShownDevice(f"gpu-{number}", healthy=False))
            instance.servers.changed()
            await asyncio.sleep(0)
        await it.shown(one)
        assert client.messages == 2
        instance.servers.changed()  # nothing has: nothing is sent
        one.put(ShownDevice("gpu-0"))
        instance.servers.changed()
        await it.shown(one)
        assert client.messages == 3


async def test_an_ended_instance_has_reported_the_kubelet_and_removed_its_sockets() -> None:
    async with node() as it:
        one = gpus()
        instance = it.serve(one)
        await it.shown(one)
        await instance.end()
        await it.kubelet.until_allocatable(GPU, 0)
        assert it.kubelet.capacity() == {GPU: 8}  # it may come back within five minutes
        assert instance.sockets() == []


async def test_a_resource_that_is_offered_no_more_has_no_capacity_at_once() -> None:
    async with node() as it:
        one, other = gpus(), nics()
        instance = it.serve(one, other)
        await it.shown(one, other)
        instance.servers.offer({NIC: other})
        await it.kubelet.until(lambda: it.kubelet.capacity() == {GPU: 0, NIC: 4})
        instance.servers.offer({GPU: one, NIC: other})
        await it.shown(one, other)


async def test_when_the_node_shows_something_else_for_a_minute_it_registers_anew() -> None:
    ahead = 0.0
    async with node() as it:
        one = gpus()
        shows = {GPU: 8}
        it.serve(one, allocatable=lambda: shows, clock=lambda: time.monotonic() + ahead)
        await it.shown(one)
        shows[GPU] = 0
        await asyncio.sleep(0.1)  # a look or more, which is not the last
        ahead += drift.PATIENCE_S + 1
        await eventually(lambda: len(registrations(it)) == 2)
        shows[GPU] = 8
        await it.shown(one)


async def test_found_by_the_plugin_watcher_it_serves_all_the_same() -> None:
    async with node() as it:
        one = gpus()
        instance = it.serve(one, registry=True)
        await it.shown(one)
        await eventually(lambda: instance.servers.problems() == {})
        assert not list(it.kubelet.folder.glob("muster-*"))
        await it.kubelet.run(asking("a", {GPU: 1}))
        await it.kubelet.restart()  # finds the socket that is there already
        await it.shown(one)


async def test_cut_off_where_the_kubelet_finds_it_the_socket_is_made_anew() -> None:
    now = 0.0
    async with node() as it:
        one = gpus()
        instance = it.serve(one, registry=True, clock=lambda: now)
        await it.shown(one)
        before = instance.sockets()
        now += STEADY_S  # before the stream ends: after it that is more than anybody's patience
        await it.kubelet._plugins.disconnect(GPU)  # and never looks at the same socket again
        await it.kubelet.until_allocatable(GPU, 0)
        await eventually(lambda: "stopped listening" in instance.servers.problems().get(GPU, ""))
        now += PATIENCE_S
        await eventually(lambda: "has not found" in instance.servers.problems().get(GPU, ""))
        now += PATIENCE_S
        await it.shown(one)
        assert instance.sockets() != before


async def test_what_dead_instances_left_is_no_obstacle() -> None:
    async with node() as it:
        left = it.kubelet.folder / "muster-nvidia.com-gpu-one-1.sock"
        with socket.socket(socket.AF_UNIX) as dead:
            dead.bind(str(left))
        one = gpus()
        it.serve(one)
        await it.shown(one)


async def test_a_broken_choice_never_fails_a_pod() -> None:
    async with node() as it:
        one = gpus()
        it.serve(one)
        await it.shown(one)
        one.breaks = True
        with pytest.raises(AdmissionError, match=r"Allocate failed.*the view is broken"):
            await it.kubelet.run(asking("a", {GPU: 2}))
        assert len(it.kubelet.offered) == 1  # the preference was answered
