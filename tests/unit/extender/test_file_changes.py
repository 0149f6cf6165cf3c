"""How often one pod's way through the extender changes file, from the watch's bytes to its PATCH.

::

    API server ──bytes──► Sync ──► Feed ──► Planner ──► Releaser ──PATCH──► API server
                          intake            plan and hold   release

A reader who follows the pod makes each of these changes. What is not on the way does not run, the
story (which notes what goes by) keeps nothing, and the time slices of the loop do not end, so that
the figures are the same each time.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aiohttp import web
from support.apiservers.apifaults import FaultyServer, api_server
from support.extenders.extenders import World, running_extender, until
from support.extenders.filechanges import FileChanges, file_changes, product_folders

from extender.config.settings import ExtenderConfig, StoryConfig
from loadtest.testbed.client.api import JSON
from loadtest.testbed.client.pods import Gang, create_owner, members
from muster.kube import names

AT_MOST = 549  # changes of file; 524 on a quiet machine, 1,597 before the rooms were made
PLANS, RELEASES = "Planner.settle", "Releaser.submit"  # the first calls of those parts
PODS = "/api/v1/namespaces/default/pods"
NOT_ON_THE_WAY = (
    *("repairer", "partial", "statuses", "conditions", "devices", "bound-gangs", "ticker"),
    *("census", "slipped", "dumper", "queues", "loop-lag", "networks", "reservations", "events"),
)


class Patched(FaultyServer):
    """An API server that counts the calls of the extender when a PATCH of a pod reaches it."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: FileChanges | None = None
        self.calls = 0  # recorded before the first PATCH

    async def handle(self, raw: web.BaseRequest) -> web.StreamResponse:
        if raw.method == "PATCH" and raw.path.startswith(PODS) and self.seen and not self.calls:
            self.calls = len(self.seen.calls)
        return await super().handle(raw)


@asynccontextmanager
async def two_racks() -> AsyncIterator[tuple[Patched, World]]:
    """Run an extender on two racks of two hosts with 8 GPUs each; its time slices never end."""
    config = ExtenderConfig(
        debounce_seconds=0.0, drain_seconds=2.0, spare_count=0, story=StoryConfig(0)
    )
    server = Patched()
    async with (
        api_server(server) as (_, url),
        running_extender(server, url, config, without=NOT_ON_THE_WAY) as running,
    ):
        await running.nodes({"r1": 2, "r2": 2})
        await until(running.extender.is_quiet)  # `settled` would build what the plan needs
        pace = running.extender.pace
        stopped = pace.clock()
        pace.clock = lambda: stopped
        pace.begin()
        yield server, running


async def gated_pod(running: World) -> JSON:
    """Return the only pod of a gang, gated as the webhook does; its Job is there and known."""
    gang = Gang("one", 1)
    sample = running.extender.parts.metrics.registry.get_sample_value
    (pod,) = members(gang, await create_owner(running.api, gang))
    await until(lambda: bool(sample("muster_watch_events_total", {"resource": "jobs"})))
    pod["spec"]["schedulingGates"] = [{"name": names.PLAN_GATE}]
    return pod


async def traced() -> FileChanges:
    """Return what one gated pod calls, until its release is sent."""
    async with two_racks() as (server, running):
        pod = await gated_pod(running)
        with file_changes(product_folders()) as seen:
            server.seen = seen
            await running.api.create(PODS, pod)
            await until(lambda: server.calls > 0)
        await running.released([pod["metadata"]["name"]])
        return FileChanges(seen.folders, seen.calls[: server.calls])


async def test_the_way_of_a_pod_changes_file_no_more_often_than_recorded() -> None:
    seen = await traced()
    parts = zip(("intake", "plan", "release"), seen.parts(PLANS, RELEASES), strict=True)
    lines = [*(f"{name}: {part.text(0)}" for name, part in parts), seen.text()]
    print("\n".join(lines))  # noqa: T201  shown with `pytest -rP`
    changes = len(seen.changes)
    assert changes <= AT_MOST
