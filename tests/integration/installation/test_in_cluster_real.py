"""Muster as pods in a cluster, from its own image, as the shipped chart installs it.

The image is the one that `make release` builds; kubelet, containerd, kube-scheduler (the second
one) and the controllers are real. What a probe, a right, a path or a name in the chart gets wrong
shows here and nowhere else (support.installed.site draws it).
"""

import re
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from support.installed import images
from support.installed.site import ALL, OURS, Site, installed
from support.networks.netns import run

from loadtest.testbed.controlplane.assets import Minor
from muster.kube import names

# The image's parts are built by `make assets`; where they are not, they are built here.
pytestmark = [
    pytest.mark.integration,
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.timeout(900),
]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def site(minor: Minor, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Site]:
    async with installed(minor, tmp_path_factory.mktemp("installed")) as running:
        yield running


async def test_the_first_gang_runs_on_devices_that_the_plugin_in_the_cluster_gave(
    site: Site,
) -> None:
    print(f"install to the first gang bound: {site.first_gang_s:.1f} s")  # noqa: T201
    members = await site.until_running("first")
    given = [(await site.node.seen(pod["metadata"]["name"])).env["MUSTER_GPUS"] for pod in members]
    assert len(set(given)) == len(members)
    assert {pod["spec"]["schedulerName"] for pod in members} == {"muster-scheduler"}
    assert all(names.PLAN in pod["metadata"]["annotations"] for pod in members)


async def test_every_program_is_a_pod_under_restricted_rules_whose_root_cannot_be_written(
    site: Site,
) -> None:
    rules = (await site.api.get("/api/v1/namespaces/muster-system"))["metadata"]["labels"]
    assert rules["pod-security.kubernetes.io/enforce"] == "restricted"
    pids = await _pids(site)
    for one in ALL:
        for pod in await site.pods(one):
            (status,) = pod["status"]["containerStatuses"]
            mounts = await _mounts(site, pids[status["containerID"].partition("://")[2]])
            assert re.search(r" / / ro[, ]", mounts), one.name


async def test_a_killed_program_comes_back_and_the_next_gang_is_placed(site: Site) -> None:
    before = await site.until_running("first")
    for one in ALL:
        await site.kill(one)
    await site.until_rolled_out(ALL)
    await site.submit("after-kills")
    await site.until_running("after-kills")
    await site.remove("after-kills")
    assert _who(await site.until_running("first")) == _who(before)


async def test_a_rolling_upgrade_loses_no_gang(site: Site) -> None:
    """Gangs come and go all the time; none slips past the webhook, none stays behind."""
    before = await site.until_running("first")
    await site.upgrade(images.NEXT)
    count = 0
    while count == 0 or not await site.rolled_out(OURS):
        name = f"meanwhile-{count}"
        await site.submit(name)
        members = await site.until_running(name)
        assert all(names.PLAN in pod["metadata"]["annotations"] for pod in members)
        await site.remove(name)
        count += 1
    for one in OURS:
        used = {pod["spec"]["containers"][0]["image"] for pod in await site.pods(one)}
        assert used == {f"{images.MUSTER}:{images.NEXT}"}
    assert _who(await site.until_running("first")) == _who(before)


def _who(members: list[dict]) -> set[tuple[str, int]]:
    """Who runs, and how often each was started again."""
    return {
        (pod["metadata"]["uid"], pod["status"]["containerStatuses"][0]["restartCount"])
        for pod in members
    }


async def _pids(site: Site) -> dict[str, str]:
    """Return the process of each container, as the node numbers it."""
    lines = (await site.ctr("tasks", "list")).splitlines()[1:]
    return {line.split()[0]: line.split()[1] for line in lines}


async def _mounts(site: Site, pid: str) -> str:
    return await run(*site.node.command("cat", f"/proc/{pid}/mountinfo"))
