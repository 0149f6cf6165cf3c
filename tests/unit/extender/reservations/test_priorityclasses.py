"""What PriorityClasses say: numbers, and which pods never give way."""

from collections.abc import AsyncIterator

import pytest
from support.apiservers.apifaults import Fault
from support.clusters.clocked import Clocked, two_racks

from extender.reservations.priorityclasses import FRESH_S, PriorityClasses

CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"
KEY = "yunikorn.apache.org/allow-preemption"


@pytest.fixture
async def site() -> AsyncIterator[Clocked]:
    async with two_racks(Clocked()) as made:
        yield made


async def _create(site: Clocked, name: str, value: int, says: str | None = None) -> None:
    notes = {} if says is None else {KEY: says}
    body = {"metadata": {"name": name, "annotations": notes}, "value": value}
    await site.cluster.api.create(CLASSES, body)


def _classes(site: Clocked) -> PriorityClasses:
    return PriorityClasses(site.cluster.extender.client, lambda: site.now)


async def test_only_false_says_that_pods_never_give_way(site: Clocked) -> None:
    """As in yunikorn-k8shim, pkg/cache/priorityclass_cache.go."""
    await _create(site, "plain", 1)
    await _create(site, "gives", 2, "true")
    await _create(site, "stays", 3, "false")
    await _create(site, "wrong", 4, "False")
    classes = _classes(site)
    assert classes.firm() == frozenset()
    await classes.refresh()
    assert classes.firm() == {3}


async def test_what_was_known_stays_where_classes_cannot_be_listed(site: Clocked) -> None:
    await _create(site, "stays", 3, "false")
    classes = _classes(site)
    await classes.refresh()
    site.cluster.server.faults.append(Fault("GET", "/priorityclasses", 500, left=1000))
    site.now += FRESH_S
    await classes.refresh()
    assert classes.firm() == {3}
    site.cluster.server.faults.clear()
    await _create(site, "other", 5, "false")
    await classes.refresh()
    assert classes.firm() == {3}, "it is not asked for again at once"
    site.now += FRESH_S
    await classes.refresh()
    assert classes.firm() == {3, 5}
