"""Which budgets are read, and when: few where they allow what is asked, all in one list else."""

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from support.apiservers.apifaults import Fault
from support.clusters.clocked import two_racks
from support.extenders.evictionsite import EvictionSite

from extender.evictions.knownbudgets import FRESH_S, KnownBudgets
from loadtest.testbed.client.api import JSON
from muster.kube import names
from muster.kube.client import KubeClient
from muster.queueing.preemption.disruptionbudgets import NamespaceBudgets


@dataclass
class Listing:
    """A client that notes the namespaces of which budgets were listed, "" for all."""

    client: KubeClient
    listed: list[str] = field(default_factory=list)

    async def list(self, resource: Any, *, namespace: str) -> Any:
        self.listed.append(namespace)
        return await self.client.list(resource, namespace=namespace)

    def pages(self, resource: Any) -> Any:
        self.listed.append("")
        return self.client.pages(resource)


@pytest.fixture
async def site() -> AsyncIterator[EvictionSite]:
    async with two_racks(EvictionSite()) as made:
        yield made


def _budgets(site: EvictionSite) -> tuple[KnownBudgets, list[str]]:
    it = site.cluster.extender
    client = Listing(it.client)
    made = KnownBudgets(client, lambda: site.now, it.pace)  # type: ignore[arg-type]
    return made, client.listed


def _of(known: NamespaceBudgets, gang: str) -> list[tuple[str, int]]:
    return [(one.name, one.allowed) for one in known.counting({names.GANG: gang})]


async def _create(site: EvictionSite, namespace: str, selector: JSON, allowed: int) -> None:
    if namespace != "default":
        await site.cluster.api.create("/api/v1/namespaces", {"metadata": {"name": namespace}})
    path = f"/apis/policy/v1/namespaces/{namespace}/poddisruptionbudgets"
    body = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "keep"},
        "spec": {"selector": selector},
    }
    await site.cluster.api.create(path, body)
    await site.cluster.api.patch(f"{path}/keep/status", {"status": {"disruptionsAllowed": allowed}})


async def test_a_namespace_is_read_once_in_a_while(site: EvictionSite) -> None:
    await site.protect()
    budgets, listed = _budgets(site)

    assert await budgets.learn(["default", "other"])
    assert not await budgets.learn(["default"])
    assert listed == ["default", "other"]
    assert _of(budgets.known()["default"], "g") == [("default/keep", 1)]
    assert not _of(budgets.known()["default"], "another")

    await site.allow(3)
    site.now += FRESH_S
    assert not budgets.known()
    assert await budgets.learn(["default"])
    assert _of(budgets.known()["default"], "g") == [("default/keep", 3)]


async def test_all_namespaces_are_read_in_one_list_and_then_none_by_itself(
    site: EvictionSite,
) -> None:
    await site.protect()
    await _create(site, "other", {"matchLabels": {names.GANG: "h"}}, 2)
    budgets, listed = _budgets(site)

    assert await budgets.learn_all()
    assert not await budgets.learn(["default", "other", "without"])
    assert not await budgets.learn_all()

    assert listed == [""]
    assert _of(budgets.known()["other"], "h") == [("other/keep", 2)]
    site.now += FRESH_S
    assert not budgets.known()
    assert await budgets.learn_all()


async def test_budgets_that_cannot_be_read_count_as_none_for_a_while(site: EvictionSite) -> None:
    """The evictor finds out; the planner does not wait for them again at once."""
    await site.protect()
    fault = Fault("GET", "/poddisruptionbudgets", 500, left=1000)
    site.cluster.server.faults.append(fault)
    budgets, listed = _budgets(site)

    assert await budgets.learn(["default"])
    assert not await budgets.learn(["default"])
    assert await budgets.learn_all()
    assert not await budgets.learn_all()

    assert listed == ["default", ""]
    assert not any(_of(of, "g") for of in budgets.known().values())


async def test_a_budget_of_a_label_that_the_model_does_not_keep_counts_nobody(
    site: EvictionSite,
) -> None:
    """It may be for one pod of a thousand: the evictor reads whole pods."""
    index = {"key": "batch.kubernetes.io/job-completion-index", "operator": "DoesNotExist"}
    await _create(site, "default", {"matchExpressions": [index]}, 0)
    budgets, _ = _budgets(site)
    await budgets.learn(["default"])
    assert not _of(budgets.known()["default"], "g")


async def test_a_budget_that_selects_everything_or_cannot_be_read_counts_every_pod(
    site: EvictionSite,
) -> None:
    await _create(site, "default", {}, 4)
    await _create(site, "other", {"matchExpressions": [{"key": "app", "operator": "Resembles"}]}, 0)
    budgets, _ = _budgets(site)
    await budgets.learn_all()
    assert _of(budgets.known()["default"], "g") == [("default/keep", 4)]
    assert _of(budgets.known()["other"], "g") == [("other/keep", 0)]
