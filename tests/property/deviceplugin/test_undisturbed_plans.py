"""Plans that nothing disturbs are met to the letter, over thousands of pods.

No hints, no tampering, no illness: pods of all shapes come and go, with good plans or with none,
the plugin is restarted under them, and whoever has a plan has just its devices. The kubelet that
can be asked admits pods in any order; one that cannot, in the order in which they were bound.
"""

from collections import Counter
from dataclasses import replace
from random import Random

import pytest
from support.devices.handshakes import SHAPES, picker, pod, stocks
from support.kubelets.purekubelet import Habits, PureKubelet

from deviceplugin.allocation.plans import needed
from deviceplugin.allocation.table import Table
from deviceplugin.allocation.values import NodePod, PodStage

STOCKS = {stock.resource: stock for stock in stocks()}
HABITS = {True: Habits(listens=True), False: Habits(listens=False)}


class Node:
    """The node, and what the API server knows of its pods."""

    def __init__(self, seed: int, *, listens: bool) -> None:
        self.rng, self.listens = Random(seed), listens
        self.table = self.fresh()
        self.kubelet = PureKubelet(self.rng, lambda: self.table)
        self.kubelet.healthy = {n: {o.id for o in s.offers} for n, s in STOCKS.items()}
        self.pods: dict[str, NodePod] = {}

    def fresh(self) -> Table:
        table = Table()
        table.stock(STOCKS.values(), picker())
        return table

    def left(self, resource: str) -> Counter[str]:
        """Names that no pod has and that are in no plan."""
        stock = STOCKS[resource]
        left = Counter(offer.name for offer in stock.offers)
        left -= stock.names_of(frozenset(self.kubelet.used(resource)))
        for each in self.pods.values():
            if each.uid not in self.kubelet.pods:
                left -= Counter(each.plan or ())
        return left

    def bind(self, name: str, number: int) -> NodePod | None:
        made = pod(name, *SHAPES[self.rng.choice(sorted(SHAPES))], batch=number)
        plan: list[str] = []
        for resource in STOCKS:
            wanted = needed(made, resource)
            waiting = [p for p in self.pods.values() if p.uid not in self.kubelet.pods]
            unplanned = sum(needed(p, resource) for p in waiting if p.plan is None)
            left = list(self.left(resource).elements())
            if len(left) < wanted + unplanned:
                return None
            plan += self.rng.sample(left, wanted)
        if self.rng.random() < 0.8:
            made = replace(made, plan=tuple(plan))
        self.pods[made.uid] = made
        self.table.pod(made)
        return made

    def admit(self, made: NodePod) -> None:
        has = self.kubelet.admit(made, HABITS[self.listens])
        for resource, stock in STOCKS.items() if made.plan is not None else ():
            assert stock.names_of(frozenset(has.ids(resource))) <= Counter(made.plan)
        self.kubelet.start(made.uid, listens=self.listens)
        if self.rng.random() < 0.5:
            self.pods[made.uid] = replace(made, life=PodStage.RUNNING)
            self.table.pod(self.pods[made.uid])

    def end(self) -> None:
        uid = self.rng.choice(sorted(self.pods))
        self.kubelet.end(uid)
        self.table.pod(replace(self.pods.pop(uid), life=PodStage.OVER))

    def restart(self) -> None:
        published, self.table = self.table.given(), self.fresh()
        for each in self.pods.values():
            self.table.pod(each)
        for uid, devices in published.items():
            self.table.recall(uid, devices)
        if self.listens:
            self.kubelet.tell()


@pytest.mark.parametrize("listens", [True, False])
@pytest.mark.parametrize("seed", range(8))
def test_every_plan_that_nothing_disturbs_is_met(*, seed: int, listens: bool) -> None:
    node = Node(seed, listens=listens)
    planned = 0
    for number in range(120):
        found = (node.bind(f"p{number}-{n}", number * 3 + n) for n in range(node.rng.randint(1, 3)))
        waiting = [each for each in found if each is not None]
        planned += sum(each.plan is not None for each in waiting)
        if listens:
            node.rng.shuffle(waiting)
        for each in waiting:
            node.admit(each)
            node.table.validate()
            assert node.table.deviations() == ()
        while node.pods and node.rng.random() < 0.7:
            node.end()
        if node.rng.random() < 0.1:
            node.restart()
    assert planned > 60
