"""What the evictor reads of the pods of a namespace: those of the gangs that give way."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
from support.clusters.clocked import two_racks
from support.extenders.evictionsite import GANG, KEY, EvictionSite
from support.extenders.extenders import PODS

from extender.evictions import memberpods
from extender.evictions.memberpods import MISSING_S, MemberPods
from loadtest.testbed.client.pods import Gang
from muster.cluster.ids import PodUid
from muster.kube.client import KubeClient

OTHER = Gang("other", 2)


@dataclass
class Counting:
    """A client that notes how many pods each list brought."""

    client: KubeClient
    read: list[int] = field(default_factory=list)

    async def list(self, *args: Any, **options: Any) -> Sequence[Any]:
        found = await self.client.list(*args, **options)
        self.read.append(len(found))
        return found

    async def pages(self, *args: Any, **options: Any) -> AsyncIterator[Any]:
        self.read.append(0)
        async for page in self.client.pages(*args, **options):
            self.read[-1] += len(page.items)
            yield page


@pytest.fixture
async def site() -> AsyncIterator[EvictionSite]:
    async with two_racks(EvictionSite()) as made:
        yield made


async def _reader(site: EvictionSite) -> tuple[MemberPods, Counting, list[PodUid]]:
    """Have two gangs run; return who reads the pods of the first one, and their UIDs."""
    await site.run()
    await site.run(OTHER)
    it = site.cluster.extender
    view, client = it.engine.state.gang(KEY), Counting(it.client)
    assert view is not None
    uids = [it.engine.state.pod_uid(int(row)) for row in view.bound]
    return MemberPods(client, it.engine), client, uids  # type: ignore[arg-type]


async def test_members_are_read_without_the_other_pods_of_the_namespace(
    site: EvictionSite,
) -> None:
    reader, client, uids = await _reader(site)

    for _ in range(2):
        pods = await reader.read("default", uids)
        assert [pod.metadata.name for pod in pods] == ["g-0", "g-1", "g-2"]
    assert client.read == [GANG.size], "once in a look"

    reader.forget()
    await reader.read("default", uids)
    assert client.read == [GANG.size] * 2


async def test_a_member_that_has_just_gone_has_nobody_read_the_whole_namespace(
    site: EvictionSite,
) -> None:
    reader, client, uids = await _reader(site)
    await site.cluster.api.delete(f"{PODS}/g-1")

    pods = await reader.read("default", uids)

    assert [pod.metadata.name for pod in pods] == ["g-0", "g-2"]
    assert client.read == [2]
    assert not reader.knows(uids), "its labels may have changed"
    await site.cluster.settled()
    site.now += MISSING_S
    reader.forget()
    assert reader.knows(uids), "the watch has shown it"
    await reader.read(
        "default", [uid for uid in uids if site.cluster.extender.engine.state.pod_row(uid)]
    )
    assert client.read == [2, 2]


async def test_a_member_that_stays_missing_is_looked_for_once_in_the_whole_namespace(
    site: EvictionSite,
) -> None:
    reader, client, uids = await _reader(site)
    await site.cluster.api.delete(f"{PODS}/g-1")
    for _ in range(3):
        await reader.read("default", uids)
        site.now += MISSING_S
        reader._known.clear()

    assert client.read == [2, 2, 4, 2]
    assert reader.knows(uids)


async def test_where_there_are_many_pods_those_of_each_node_are_read(
    site: EvictionSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three members on three nodes, five pods and a gang of seven that waits."""
    monkeypatch.setattr(memberpods, "PODS_A_NODE", 1)
    reader, client, uids = await _reader(site)

    pods = await reader.read("default", uids)

    assert sorted(pod.metadata.name for pod in pods) == ["g-0", "g-1", "g-2"]
    assert client.read == [1, 1, 1]
    assert reader.knows(uids)


async def test_where_there_are_few_pods_for_each_node_one_list_is_read(site: EvictionSite) -> None:
    reader, client, uids = await _reader(site)
    assert site.cluster.extender.engine.state.pod_count < len(uids) * memberpods.PODS_A_NODE
    await reader.read("default", uids)
    assert client.read == [GANG.size]


async def test_gangs_that_are_read_together_share_a_list(site: EvictionSite) -> None:
    reader, client, uids = await _reader(site)
    await asyncio.gather(*(reader.read("default", uids) for _ in range(3)))
    assert client.read == [GANG.size]


async def test_a_member_whose_labels_have_changed_meanwhile_is_found_all_the_same(
    site: EvictionSite,
) -> None:
    reader, client, uids = await _reader(site)
    labels = (await site.cluster.api.get(f"{PODS}/g-1"))["metadata"]["labels"]
    gone = {"metadata": {"labels": dict.fromkeys(labels)}}
    await site.cluster.api.patch(f"{PODS}/g-1", gone)

    await reader.read("default", uids)
    site.now += MISSING_S
    pods = await reader.read("default", uids)

    assert [pod.metadata.name for pod in pods] == ["g-0", "g-1", "g-2"]
    assert client.read == [2, GANG.size + OTHER.size]
    assert reader.knows(uids)
