"""Work inside the simulated server: pods come, run where the extender put them, and go.

What the extender does is done here by hand: the gate goes, the plan comes.
"""

import json
from collections import Counter

import pytest

from loadtest.testbed.client.nodes import node
from loadtest.testbed.client.wirejson import JsonObject
from loadtest.testbed.standins.apiserver.churn import Churn, Rates
from loadtest.testbed.standins.apiserver.objects import Objects
from loadtest.testbed.standins.apiserver.resources import Registry
from loadtest.testbed.standins.apiserver.status import StatusError
from loadtest.testbed.standins.apiserver.store import Store
from muster.kube.names import PLAN

RATES = Rates(pods_per_second=40, gang=4, runs_s=2.0, node_updates_per_second=10, backlog_s=1.0)


class World:
    """Ten nodes and the work on them; time goes on by ``step``."""

    def __init__(self, rates: Rates = RATES) -> None:
        self.objects = Objects(Store(), Registry(), lambda: 1e9, seed=1)
        self._new("namespaces", {"metadata": {"name": "default"}})
        for number in range(10):
            self._new("nodes", node(f"n{number}"))
        self.churn = Churn(self.objects, rates, 0.0)
        self.now = 0.0

    def _new(self, plural: str, sent: JsonObject) -> None:
        resource = self.objects.registry.find("", "v1", plural)
        assert resource is not None
        made = self.objects.finish(resource, self.objects.begin(resource, "", sent))
        self.objects.create(resource, made)

    def step(self, seconds: float, *, release: bool) -> None:
        end = self.now + seconds
        while self.now < end:
            self.now += 0.0625  # exact in binary, so that nothing is lost in sums
            self.churn.tick(self.now)
            if release:
                self._release()
            self.check()

    def pods(self) -> dict[str, JsonObject]:
        resource = self.objects.registry.find("", "v1", "pods")
        assert resource is not None
        entries = self.objects.collection(resource).entries
        return {key[1]: entry.decode() for key, entry in entries.items()}

    def _release(self) -> None:
        resource = self.objects.registry.find("", "v1", "pods")
        assert resource is not None
        for name, pod in self.pods().items():
            if pod["spec"].get("schedulingGates"):
                pod["spec"]["schedulingGates"] = []
                plan = json.dumps({"node": "n1"})
                pod["metadata"]["annotations"][PLAN] = plan
                collection = self.objects.collection(resource)
                self.objects.store.write(collection, ("default", name), pod)

    def check(self) -> None:
        """What is counted is what is there."""
        counts, pods = self.churn.counts, self.pods()
        assert counts["created"] - counts["deleted"] == len(pods)
        gated = [name for name, pod in pods.items() if pod["spec"].get("schedulingGates")]
        assert self.churn.waiting == len(gated)
        assert counts["created"] >= counts["released"] >= counts["bound"] >= counts["deleted"]


def test_pods_come_at_the_rate_run_for_their_time_and_go() -> None:
    world = World()
    world.step(10.0, release=True)
    counts = world.churn.counts
    assert counts["created"] == 400
    assert counts["node_updates"] == 100
    assert counts["held_back"] == 0
    # A gang needs a tenth of a second to be complete and runs for two seconds.
    assert 40 * 2.0 <= len(world.pods()) <= 40 * 2.5
    running = [pod for pod in world.pods().values() if pod["status"]["phase"] == "Running"]
    assert {pod["spec"]["nodeName"] for pod in running} == {"n1"}
    # Created, released, bound and deleted: four events for each pod that has gone.
    assert counts["pod_events"] >= 4 * counts["deleted"]


def test_without_releases_pods_wait_gated_and_creation_holds_back_after_the_backlog() -> None:
    world = World()
    world.step(5.0, release=False)
    assert world.churn.counts["created"] == 40
    assert world.churn.counts["held_back"] == 160
    assert world.churn.counts["bound"] == 0


def test_nodes_take_turns_in_their_updates() -> None:
    world = World()
    seen: Counter[str] = Counter()
    resource = world.objects.registry.find("", "v1", "nodes")
    assert resource is not None
    world.objects.collection(resource).listeners.append(lambda change: seen.update([change.key[1]]))
    world.step(3.0, release=False)
    assert set(seen.values()) == {3}


def test_closed_it_counts_no_more() -> None:
    world = World()
    world.step(1.0, release=True)
    world.churn.close()
    before = world.churn.counts["pod_events"]
    world._release()
    assert world.churn.counts["pod_events"] == before


@pytest.mark.parametrize("query", [{}, {"pods_per_second": "many"}, {"gang": "4"}])
def test_rates_that_are_no_numbers_are_refused(query: dict[str, str]) -> None:
    with pytest.raises(StatusError, match="pods_per_second") as refused:
        Rates.of_query(query)
    assert refused.value.code == 400
