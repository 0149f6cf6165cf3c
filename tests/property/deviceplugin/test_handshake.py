"""Pods of any shape, plans of any kind and a kubelet of any habits: who gets which devices.

After every step: the table's own books are sound, and nothing is handed out twice. Whenever the
kubelet was heard, even one that has just started and lists few of its pods: the table knows exactly
who has what, and every pod that does not have what its plan says is reported, and no other.
Whenever nothing disturbed a pod's plan (its devices are to be had, the kubelet goes by what is
preferred): it has exactly its devices.
"""

from collections import Counter
from dataclasses import replace
from random import Random

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from support.devices.handshakes import GPU, HCA, MIG, SHAPES, SHARED, numa_of, picker, pod, stocks
from support.kubelets.purekubelet import AdmissionError, Habits, PureKubelet

from deviceplugin.allocation.plans import needed
from deviceplugin.allocation.table import Table
from deviceplugin.allocation.values import DeviationKind, NodePod, PodStage
from deviceplugin.errors import AllocationRefused, RefusalCause

PARENTS = [*(f"gpu{i}" for i in range(8)), *(f"nic{i}" for i in range(4))]
PLANS = ("good", "good", "good", "none", "tampered", "foreign", "unreadable")


class Handshake(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.rng = Random(0)
        self.ill: frozenset[str] = frozenset()
        self.table = Table()
        self.kubelet = PureKubelet(self.rng, lambda: self.table, news=self.watch_brings_ends)
        self.bound: dict[str, NodePod] = {}  # what the API server knows
        self.unseen: list[str] = []  # by the kubelet, in the order of binding
        self.fed: set[str] = set()  # what the plugin's watch has brought
        self.ended: dict[str, NodePod] = {}  # pods whose end it has still to bring
        self.strange: set[str] = set()  # pods that it had not brought when the kubelet started
        self.listens = True
        self.count = 0

    @initialize(seed=st.integers(0, 2**16), listens=st.booleans())
    def node(self, *, seed: int, listens: bool) -> None:
        self.rng.seed(seed)
        self.listens = listens
        self.stock()

    def stock(self) -> None:
        self.stocks = {each.resource: each for each in stocks(self.ill)}
        self.table.stock(self.stocks.values(), picker())
        self.kubelet.healthy = {
            name: {offer.id for offer in each.offers if offer.healthy}
            for name, each in self.stocks.items()
        }

    # --- pods come ----------------------------------------------------------------------------

    @rule(
        shape=st.sampled_from(sorted(SHAPES)),
        many=st.integers(1, 3),
        plan=st.sampled_from(PLANS),
        age=st.integers(0, 3),
        fed=st.sampled_from((True, True, False)),
        at_once=st.booleans(),
    )
    def pods_are_bound(
        self, *, shape: str, many: int, plan: str, age: int, fed: bool, at_once: bool
    ) -> None:
        """Pods of one shape; ``at_once``: the kubelet admits them as soon as they are there."""
        self.bind(shape, many, plan, age=age, fed=fed)
        if at_once:
            self.kubelet_admits(numa=None, headstrong=False, at_once=True)

    def bind(self, shape: str, many: int, plan: str, *, age: int, fed: bool) -> None:
        for _ in range(many):
            self.count += 1
            made = pod(f"p{self.count}", *SHAPES[shape], batch=self.count, created=float(age))
            if not self.has_room(made):
                return
            self.bound[made.uid] = self.planned(made, plan)
            self.unseen.append(made.uid)
            if fed:
                self.feed(made.uid)

    def has_room(self, made: NodePod) -> bool:
        """kube-scheduler counts what is allocatable."""
        for name, stock in self.stocks.items():
            asked = sum(needed(each, name) for each in (*self.bound.values(), made))
            if asked > sum(offer.healthy for offer in stock.offers):
                return False
        return True

    def planned(self, made: NodePod, how: str) -> NodePod:
        if how == "unreadable":
            return replace(made, problem="is no JSON")
        if how == "none":
            return made
        if how == "foreign":
            return replace(made, plan=tuple(f"elsewhere{i}" for i in range(4)))
        if how == "tampered":
            return replace(made, plan=tuple(self.rng.choices(PARENTS, k=self.rng.randint(0, 4))))
        return replace(made, plan=tuple(self.good_plan(made)))

    def good_plan(self, made: NodePod) -> list[str]:
        """Names that no other pod has or is planned to have, as the extender writes them."""
        names: list[str] = []
        for resource, stock in self.stocks.items():
            left = Counter(offer.name for offer in stock.offers if offer.healthy)
            used = self.kubelet.used(resource) | self.forgotten(resource)
            left -= stock.names_of(frozenset(used))
            for each in self.bound.values():
                if each.uid in self.unseen and each.plan:
                    left -= Counter(each.plan)
            names += sorted(left.elements())[: needed(made, resource)]
        return names

    @precondition(lambda self: self.bound.keys() - self.fed)
    @rule()
    def feed_catches_up(self) -> None:
        for uid in [each for each in self.bound if each not in self.fed]:
            self.feed(uid)

    @precondition(lambda self: self.fed)
    @rule(data=st.data(), plan=st.sampled_from(PLANS))
    def plan_is_changed(self, *, data: st.DataObject, plan: str) -> None:
        """It comes late, or somebody tampers with it."""
        uid = data.draw(st.sampled_from(sorted(self.fed)))
        before = self.bound[uid]
        bare = replace(before, plan=None, problem="")
        self.bound[uid] = (
            self.planned(bare, plan)
            if uid in self.unseen
            else replace(before, plan=("elsewhere",), problem="")
        )
        self.feed(uid)

    def feed(self, uid: str) -> None:
        self.table.pod(self.bound[uid])
        self.fed.add(uid)

    # --- the kubelet --------------------------------------------------------------------------

    @precondition(lambda self: self.unseen)
    @rule(
        numa=st.none() | st.none() | st.integers(0, 1),
        headstrong=st.integers(0, 5).map(lambda n: n == 0),
        at_once=st.booleans(),
    )
    def kubelet_admits(self, *, numa: int | None, headstrong: bool, at_once: bool) -> None:
        """One pod as it was bound, or all that it has not seen, by creation."""
        aligned = None if numa is None else numa_of(self.stocks, numa)
        habits = Habits(aligned, headstrong, self.listens)
        todo = list(self.unseen) if at_once else self.unseen[:1]
        for uid in sorted(todo, key=lambda each: self.bound[each].created):
            self.unseen.remove(uid)
            self.admit(self.bound[uid], habits)

    def admit(self, one: NodePod, habits: Habits) -> None:
        should = self.undisturbed(one, habits)
        try:
            has = self.kubelet.admit(one, habits)
        except AdmissionError:
            self.ends(one.uid)
            return
        except AllocationRefused as error:
            if error.cause is not RefusalCause.TAKEN or not self.has_forgotten():
                raise
            self.ends(one.uid)
            return
        if should:
            for resource, stock in self.stocks.items():
                ids = frozenset(has.ids(resource))
                assert stock.names_of(ids) <= Counter(one.plan), (one, has)
        if self.listens:
            self.kubelet.tell()

    def undisturbed(self, one: NodePod, habits: Habits) -> bool:
        """Tell whether a pod's plan can be met and the kubelet leaves the choice to the plugin."""
        if one.uid not in self.fed or one.plan is None or not self.listens:
            return False
        if not self.ended.keys().isdisjoint(self.table.given()):
            return False
        if habits.headstrong or habits.aligned is not None:
            return False
        left = Counter(one.plan)
        for resource, stock in self.stocks.items():
            free = stock.names_of(frozenset(self.kubelet.free(resource)) - self.forgotten(resource))
            wanted = Counter(n for n in left.elements() if n in {o.name for o in stock.offers})
            if wanted.total() != needed(one, resource) or not wanted <= free:
                return False
            if self.is_wanted_by_others(one, wanted, free):
                return False
            left -= wanted
        return not left

    def is_wanted_by_others(self, one: NodePod, wanted: Counter[str], free: Counter[str]) -> bool:
        """Tell whether plans of other pods that wait name too much of the same."""
        others = Counter[str]()
        for each in self.table._book.pods.values():
            if each.uid != one.uid and each.plan and each.uid not in self.kubelet.pods:
                others.update(n for n in each.plan if n in wanted)
        return any(others[name] + wanted[name] > free[name] for name in wanted)

    @precondition(lambda self: self.kubelet.pods)
    @rule(data=st.data())
    def containers_start(self, *, data: st.DataObject) -> None:
        uid = data.draw(st.sampled_from(sorted(self.kubelet.pods)))
        self.kubelet.start(uid, listens=self.listens)
        if data.draw(st.booleans()):
            self.bound[uid] = replace(self.bound[uid], life=PodStage.RUNNING)
            self.feed(uid)

    # --- ends ---------------------------------------------------------------------------------

    @precondition(lambda self: len(self.bound) > 2)
    @rule(data=st.data(), deleted=st.booleans(), fed=st.booleans())
    def pod_ends(self, *, data: st.DataObject, deleted: bool, fed: bool) -> None:
        uid = data.draw(st.sampled_from(sorted(self.bound)))
        if deleted and fed:
            self.bound[uid] = replace(self.bound[uid], life=PodStage.ENDING)
            self.feed(uid)
        self.ends(uid, fed=fed)

    def ends(self, uid: str, *, fed: bool = True) -> None:
        """Its containers have ended; the plugin hears of it at once or from the kubelet."""
        self.kubelet.end(uid)
        self.unseen = [each for each in self.unseen if each != uid]
        gone = self.bound.pop(uid)
        if uid not in self.fed:
            return
        self.fed.discard(uid)
        self.ended[uid] = gone
        if fed or not self.listens:
            self.watch_brings_ends()

    @rule()
    def watch_brings_ends(self) -> None:
        for uid, gone in self.ended.items():
            self.table.pod(replace(gone, life=PodStage.OVER))
            self.table.gone(uid)
        self.ended.clear()

    # --- health and restarts ------------------------------------------------------------------

    @rule(parent=st.sampled_from(PARENTS))
    def health_changes(self, *, parent: str) -> None:
        self.ill ^= {parent}
        self.stock()

    def forgotten(self, resource: str) -> frozenset[str]:
        """What containers use and the kubelet offers all the same; the Node says who has it."""
        pods = self.kubelet.pods.values()
        return frozenset[str]().union(*(one.forgotten.get(resource, set()) for one in pods))

    def has_forgotten(self) -> bool:
        return any(one.forgotten for one in self.kubelet.pods.values())

    @precondition(lambda self: self.listens and self.bound.keys() == self.fed)
    @rule(often=st.integers(0, 2))
    def kubelet_loses_its_checkpoint(self, *, often: int) -> None:
        if often == 0:
            for uid in self.kubelet.pods:
                self.kubelet.start(uid, listens=True)
            self.kubelet.tell()
            self.kubelet.lose_checkpoint()

    @rule()
    def kubelet_restarts(self) -> None:
        unknown = self.kubelet.pods.keys() - self.fed
        self.strange = (self.strange & self.kubelet.unlisted) | unknown
        self.kubelet.restart()

    @precondition(lambda self: self.kubelet.unlisted)
    @rule(many=st.integers(1, 3))
    def kubelet_comes_to_pods(self, *, many: int) -> None:
        self.kubelet.readmit(many)

    @precondition(lambda self: not self.has_forgotten())
    @rule()
    def plugin_restarts(self) -> None:
        published = self.table.given()
        self.table = Table()
        self.ended.clear()
        self.stock()
        for uid, one in self.bound.items():
            self.table.pod(replace(one, batch=0))
            self.fed.add(uid)
        for uid, devices in published.items():
            self.table.recall(uid, devices)
        if self.listens:
            self.kubelet.tell()

    # --- what must hold -----------------------------------------------------------------------

    @invariant()
    def the_books_are_sound(self) -> None:
        self.table.validate()

    @invariant()
    def nothing_is_handed_out_twice(self) -> None:
        for resource in (GPU, SHARED, MIG, HCA):
            held = Counter(
                each for one in self.kubelet.pods.values() for each in one.really(resource)
            )
            assert max(held.values(), default=1) == 1

    @invariant()
    def who_has_what_is_known_and_told(self) -> None:
        if not self.listens:
            return
        self.kubelet.tell()
        given = self.table.given()
        reported = {
            (d.uid, d.resource)
            for d in self.table.deviations()
            if d.why is DeviationKind.OTHER_DEVICES
        }
        for uid, one in self.kubelet.pods.items():
            if uid not in self.fed or uid in self.strange & self.kubelet.unlisted:
                continue
            for resource, stock in self.stocks.items():
                ids, running = frozenset(one.really(resource)), one.listed(resource)
                mine = Counter(given.get(uid, {}).get(resource, ()))
                assert stock.names_of(running) <= mine <= stock.names_of(ids)
                self.is_told(one.pod, resource, ids, reported)

    def is_told(
        self, one: NodePod, resource: str, ids: frozenset[str], reported: set[tuple[str, str]]
    ) -> None:
        planned = self.bound[one.uid]
        stock = self.stocks[resource]
        mine = Counter(planned.plan or ())
        mine = Counter({o.name: mine[o.name] for o in stock.offers if mine[o.name]})
        agreed = stock.names_of(ids) <= mine
        problems = [d for d in self.table.deviations() if d.uid == one.uid]
        if planned.plan and not agreed and ids and (mine or set(planned.plan) - {*PARENTS}):
            assert any(d.resource in (resource, "") for d in problems), (planned, ids)
        if planned.plan and agreed:
            assert (one.uid, resource) not in reported


TestHandshake = Handshake.TestCase


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("again", [False, True], ids=["started-once", "started-twice"])
def test_a_kubelet_that_lost_its_checkpoint_and_starts_again_gives_nothing_out_twice(
    seed: int, *, again: bool
) -> None:
    """p1 has ended, and nobody has said so yet; p2 and p3 are not listed; p4 asks for a third."""
    it = _node(seed)
    it.bind("cut", 3, "good", age=1, fed=True)
    it.kubelet_admits(numa=None, headstrong=False, at_once=True)
    it.kubelet_loses_its_checkpoint(often=0)
    if again:
        it.kubelet_comes_to_pods(many=3)
        it.kubelet_restarts()
    it.ends("uid-p1", fed=False)
    it.bind("cut", 1, "tampered", age=0, fed=True)
    it.kubelet_admits(numa=None, headstrong=True, at_once=True)
    _holds(it)
    it.kubelet_comes_to_pods(many=3)
    _holds(it)


@pytest.mark.parametrize("starts", [False, True], ids=["admitted", "running"])
@pytest.mark.parametrize("listed", range(3))
def test_other_devices_than_planned_are_reported_by_a_plugin_that_starts_beside_a_new_kubelet(
    listed: int, *, starts: bool
) -> None:
    """The kubelet lists none, one or both of the pods that it gave devices of its own choice."""
    it = _node(0)
    it.bind("two", 2, "good", age=0, fed=True)
    plans = {one.plan for one in it.bound.values()}
    it.kubelet_admits(numa=1, headstrong=True, at_once=True)
    if starts:
        for uid in it.bound:
            it.kubelet.start(uid, listens=True)
    wrong = {(each.uid, each.expected, each.given) for each in it.table.deviations()}
    assert {expected for _, expected, _ in wrong} == plans
    it.kubelet_restarts()
    it.kubelet_comes_to_pods(many=listed)
    it.plugin_restarts()
    _holds(it)
    assert {(each.uid, each.expected, each.given) for each in it.table.deviations()} == wrong


def _node(seed: int) -> Handshake:
    it = Handshake()
    it.node(seed=seed, listens=True)
    return it


def _holds(it: Handshake) -> None:
    it.the_books_are_sound()
    it.nothing_is_handed_out_twice()
    it.who_has_what_is_known_and_told()
