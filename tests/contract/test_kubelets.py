"""What the fake kubelet claims is what the real ones do, seen with our own servers before both.

Each test has a resource of its own, so all of a kind share one node.
"""

import asyncio
import itertools
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress

import pytest
import pytest_asyncio
from support.devices.served import CallLog, eventually
from support.kubelets.fakekubelet import AdmissionError, Container, FakeKubelet
from support.kubelets.kubelets import FakeSide, Kubelet, RealSide
from support.kubelets.realnode import NodeOptions, real_cluster
from support.machine.shortpath import short_folder
from support.webhooks.plainview import PlainView, given_by, view

from deviceplugin.model.answers import ShownDevice
from deviceplugin.serving.lifecycle import OTHERS_S
from deviceplugin.serving.resource import SocketPlace
from deviceplugin.serving.servers import Servers
from loadtest.testbed.controlplane.assets import MINORS

pytestmark = pytest.mark.asyncio(loop_scope="module")

KINDS = ["simulated", *(pytest.param(minor, marks=pytest.mark.integration) for minor in MINORS)]
HEALTH = "ResourceHealthStatus"  # the default since 1.36 (pkg/features/kube_features.go)
_NUMBERS = itertools.count()


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=KINDS)
async def kubelet(request: pytest.FixtureRequest) -> AsyncIterator[Kubelet]:
    if request.param == "simulated":
        with short_folder() as root:
            async with FakeKubelet(root) as fake:
                yield FakeSide(fake)
    else:
        flags = (f"--feature-gates={HEALTH}=true",)
        options = NodeOptions(feature_gates={HEALTH: True})
        async with real_cluster(request.param, options, api_server_flags=flags) as node:
            yield RealSide(node)


@pytest.fixture
def four() -> PlainView:
    resource = f"example.com/thing{next(_NUMBERS)}"
    return view(resource, [f"thing-{number}" for number in range(4)])


@asynccontextmanager
async def served(
    kubelet: Kubelet, one: PlainView, start: str = "one", *, registry: bool = False
) -> AsyncIterator[Servers]:
    """Serve a resource; the kubelet has answered its first registration by then.

    It reads the list before it answers: what cuts the registration off in between is not counted.
    """
    place = SocketPlace(kubelet.folder, start, kubelet.registry if registry else None)
    servers = Servers(place, None, CallLog())
    servers.offer({one.resource: one})
    task = asyncio.create_task(servers.run())
    try:
        await eventually(lambda: servers.registrations(one.resource) >= 1)
        yield servers
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def test_a_pod_gets_what_is_preferred_and_frees_it_at_its_end(
    kubelet: Kubelet, four: PlainView
) -> None:
    async with served(kubelet, four):
        await kubelet.until_allocatable(four.resource, 4)
        pod = await kubelet.run({four.resource: 2})
        assert given_by(await kubelet.env(pod), four.resource) == ["thing-2", "thing-3"]
        await kubelet.delete(pod)
        pod = await kubelet.run({four.resource: 4})
        assert len(given_by(await kubelet.env(pod), four.resource)) == 4
        await kubelet.delete(pod)


async def test_an_ill_device_leaves_the_allocatable_and_stays_in_the_capacity(
    kubelet: Kubelet, four: PlainView
) -> None:
    async with served(kubelet, four) as servers:
        await kubelet.until_allocatable(four.resource, 4)
        four.put(ShownDevice("thing-3", healthy=False))
        servers.changed()
        await kubelet.until_allocatable(four.resource, 3)
        assert await kubelet.capacity(four.resource) == 4
        pod = await kubelet.run({four.resource: 1})
        assert given_by(await kubelet.env(pod), four.resource) == ["thing-2"]
        await kubelet.delete(pod)


async def test_a_refused_allocation_fails_the_pod_with_our_words(
    kubelet: Kubelet, four: PlainView
) -> None:
    async with served(kubelet, four):
        await kubelet.until_allocatable(four.resource, 4)
        four.put(*(ShownDevice(each, healthy=False) for each in four.devices))  # not told yet
        with pytest.raises(AdmissionError, match="is not healthy"):
            await kubelet.run({four.resource: 1})


async def test_the_end_of_an_older_instance_cuts_the_newer_one_off_which_registers_again(
    kubelet: Kubelet, four: PlainView
) -> None:
    async with AsyncExitStack() as old:
        await old.enter_async_context(served(kubelet, four, "old"))
        await kubelet.until_allocatable(four.resource, 4)
        async with served(kubelet, four, "new") as servers:
            await eventually(lambda: not servers.problems())
            await old.aclose()
            await eventually(lambda: servers.registrations(four.resource) >= 2)
            await eventually(lambda: not servers.problems())
            await kubelet.until_allocatable(four.resource, 4)
            await kubelet.delete(await kubelet.run({four.resource: 4}))


async def test_when_a_newer_instance_ends_the_older_one_takes_the_resource_back(
    kubelet: Kubelet, four: PlainView
) -> None:
    async with served(kubelet, four, "old") as servers:
        await kubelet.until_allocatable(four.resource, 4)
        async with served(kubelet, four, "new") as others:
            await eventually(lambda: not others.problems())
            await asyncio.sleep(OTHERS_S)  # what has just registered need not do so again
        await eventually(lambda: servers.registrations(four.resource) == 2)
        await eventually(lambda: not servers.problems())
        await kubelet.until_allocatable(four.resource, 4)
        await kubelet.delete(await kubelet.run({four.resource: 4}))


async def test_after_a_restart_of_the_kubelet_pods_keep_theirs_and_new_ones_get_the_rest(
    kubelet: Kubelet, four: PlainView
) -> None:
    async with served(kubelet, four) as servers:
        await kubelet.until_allocatable(four.resource, 4)
        kept = await kubelet.run({four.resource: 3})
        before = given_by(await kubelet.env(kept), four.resource)
        await kubelet.restart()
        # A real Node says what it said before until the kubelet has reported anew.
        await eventually(lambda: servers.registrations(four.resource) >= 2)
        await kubelet.until_allocatable(four.resource, 4)
        more = await kubelet.run({four.resource: 1})
        assert not set(before) & set(given_by(await kubelet.env(more), four.resource))
        for pod in (kept, more):
            await kubelet.delete(pod)


async def test_a_container_that_crashes_gets_what_it_had_also_from_a_kubelet_that_restarted(
    kubelet: Kubelet, four: PlainView
) -> None:
    async with served(kubelet, four) as servers:
        await kubelet.until_allocatable(four.resource, 4)
        pod = await kubelet.run({four.resource: 2})
        before = given_by(await kubelet.env(pod), four.resource)
        await kubelet.crash(pod)
        assert given_by(await kubelet.env(pod), four.resource) == before
        await kubelet.restart()
        await eventually(lambda: servers.registrations(four.resource) >= 2)
        await kubelet.until_allocatable(four.resource, 4)
        await kubelet.crash(pod)
        assert given_by(await kubelet.env(pod), four.resource) == before
        await kubelet.delete(pod)


async def test_what_an_init_container_had_passes_on_and_what_a_sidecar_has_does_not(
    kubelet: Kubelet, four: PlainView
) -> None:
    init = Container("prepare", {four.resource: 2}), Container("beside", {four.resource: 1}, True)
    async with served(kubelet, four):
        await kubelet.until_allocatable(four.resource, 4)
        pod = await kubelet.run({four.resource: 2}, init)
        prepare, beside, main = [
            set(given_by(await kubelet.env(pod, name), four.resource))
            for name in ("prepare", "beside", "main")
        ]
        assert beside < prepare
        assert prepare - beside < main
        assert not beside & main
        more = await kubelet.run({four.resource: 1})
        assert set(given_by(await kubelet.env(more), four.resource)).isdisjoint(beside | main)
        for each in (pod, more):
            await kubelet.delete(each)


async def test_a_pod_that_is_deleted_while_the_kubelet_is_away_leaves_nothing(
    kubelet: Kubelet, four: PlainView
) -> None:
    async with served(kubelet, four) as servers:
        await kubelet.until_allocatable(four.resource, 4)
        lost = await kubelet.run({four.resource: 3})
        uid = kubelet.uid(lost)
        await kubelet.stop()
        assert uid in kubelet.saved()
        await kubelet.lose(lost)
        await kubelet.start()
        await eventually(lambda: servers.registrations(four.resource) >= 2)
        await kubelet.until_allocatable(four.resource, 4)
        plain = await kubelet.run({})  # those of its first list are admitted before it frees any
        pod = await kubelet.run({four.resource: 4})
        assert len(given_by(await kubelet.env(pod), four.resource)) == 4
        assert uid not in kubelet.saved()
        for each in (plain, pod):
            await kubelet.delete(each)


async def test_a_pod_says_how_its_devices_are_as_the_plugin_reports_it(
    kubelet: Kubelet, four: PlainView
) -> None:
    async with served(kubelet, four) as servers:
        await kubelet.until_allocatable(four.resource, 4)
        pod = await kubelet.run({four.resource: 2})
        sick, well = given_by(await kubelet.env(pod), four.resource)
        for healthy, said in ((True, "Healthy"), (False, "Unhealthy"), (True, "Healthy")):
            four.put(ShownDevice(sick, healthy=healthy))
            servers.changed()
            await kubelet.until_health(pod, {sick: said, well: "Healthy"})
        await kubelet.delete(pod)


async def test_a_removed_socket_is_served_and_registered_again(
    kubelet: Kubelet, four: PlainView
) -> None:
    async with served(kubelet, four, "gone") as servers:
        await kubelet.until_allocatable(four.resource, 4)
        (socket,) = kubelet.folder.glob("muster-*-gone-*.sock")
        socket.unlink()
        await eventually(lambda: servers.registrations(four.resource) >= 2)
        await eventually(lambda: not servers.problems())
        await kubelet.until_allocatable(four.resource, 4)  # its devices come after that
        pod = await kubelet.run({four.resource: 4})
        await kubelet.delete(pod)


async def test_a_resource_that_is_retired_has_no_capacity_left(
    kubelet: Kubelet, four: PlainView
) -> None:
    async with served(kubelet, four) as servers:
        await kubelet.until_allocatable(four.resource, 4)
        servers.offer({})
        await kubelet.until_capacity(four.resource, 0)


async def test_the_plugin_watcher_finds_a_socket_and_lets_it_go(
    kubelet: Kubelet, four: PlainView
) -> None:
    async with served(kubelet, four, registry=True) as servers:
        await kubelet.until_allocatable(four.resource, 4)
        await eventually(lambda: not servers.problems())
        pod = await kubelet.run({four.resource: 2})
        assert given_by(await kubelet.env(pod), four.resource) == ["thing-2", "thing-3"]
        await kubelet.delete(pod)
    await kubelet.until_allocatable(four.resource, 0)
