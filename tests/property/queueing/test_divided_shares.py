"""Who takes up to a fair share, in random trees of KAI's queues, counted from outside.

::

    cluster ─┬─ p ─┬─ a        16 GPUs; gangs of 1 to 5 run or wait; what is above the quotas is
             │     └─ b        divided by weight and priority
             └─ c

Fair shares are what the division gives by what gangs have and ask for. They stay as they are while
gangs end and start, because whoever ends waits again.
"""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from hypothesis import given, settings
from hypothesis import strategies as st

from muster.cluster.ids import GangKey
from muster.cluster.quota.cells import Cell, Quota
from muster.cluster.quota.preemptionpolicy import PreemptionPolicy, ReclaimFloor
from muster.cluster.quota.queuespec import QueueName, QueueSpec, ShareFunction
from muster.cluster.quota.tree import QuotaTree
from muster.queueing.admission.applicant import Applicant
from muster.queueing.admission.fairshares import GivenShares
from muster.queueing.admission.turn import Turns
from muster.queueing.preemption.policies import PreemptionPolicies, RoomPermission
from muster.queueing.preemption.rules import RoomRules
from muster.queueing.preemption.stability import is_evener, returning
from muster.queueing.preemption.tenant import Tenant
from muster.queueing.preemption.usagetrial import UsageTrial
from muster.queueing.preemption.victimaccount import VictimAccount

GPU, GPUS = Cell("", "nvidia.com/gpu"), 16
ROOT = QueueName("kai/*")
ABOVE = {"p": "*", "a": "p", "b": "p", "c": "*"}
LEAVES = "abc"
POLICY = PreemptionPolicy(floor=ReclaimFloor.ZERO, reaches_outside=False, takes_fair_share=True)
POLICIES = PreemptionPolicies({"kai": RoomPermission()})


@dataclass(frozen=True, slots=True)
class Shares:
    """Queues and gangs."""

    #: (quota, weight, priority) of each queue, by name
    queues: tuple[tuple[str, int, int, int], ...]
    #: (queue, GPUs, priority)
    gangs: tuple[tuple[str, int, int], ...]

    def tenants(self) -> list[Tenant]:
        """Return the gangs, by their numbers."""
        return [
            Tenant(GangKey(f"kai/ns/g{n}"), QueueName(f"kai/{queue}"), priority, {GPU: gpus})
            for n, (queue, gpus, priority) in enumerate(self.gangs)
        ]

    def tree(self, running: Sequence[Tenant]) -> QuotaTree:
        """Return the queues, with what runs charged."""
        made = QuotaTree()
        quota = {GPU: Quota(GPUS)}
        made.put(QueueSpec(ROOT, None, quota, is_whole=True, shares=ShareFunction.TWO_PHASES))
        for name, quota, weight, priority in self.queues:
            parent = QueueName(f"kai/{ABOVE[name]}")
            made.put(
                QueueSpec(
                    QueueName(f"kai/{name}"), parent, {GPU: Quota(quota)}, 1000 * weight, priority,
                    is_whole=True, preemption=POLICY,
                )
            )  # fmt: skip
        for one in running:
            assert one.queue is not None
            made.charge(one.queue, one.amounts)
        return made

    def turns(self, running: Sequence[Tenant], waiting: Sequence[Tenant]) -> Turns:
        """Return who is next."""
        turns = Turns(self.tree(running))
        turns.seat(
            [
                Applicant(each.gang, each.queue, each.amounts, each.priority, float(number))
                for number, each in enumerate(waiting)
                if each.queue is not None
            ]
        )
        return turns

    def rules(
        self, running: Sequence[Tenant], waiting: Sequence[Tenant], wants: Tenant
    ) -> RoomRules:
        """Return the rules for one that waits."""
        tree = self.tree(running)
        turns = Turns(tree)
        turns.seat(
            [Applicant(each.gang, each.queue, each.amounts) for each in waiting if each.queue]
        )
        asked = RoomRules(
            wants, UsageTrial(tree), POLICIES, 0.0, {}, frozenset({GPU}), divided=turns.shares()
        )
        mine = [one for one in running if asked.is_own(one) and asked.by_right(one) is None]
        return replace(asked, own={GPU: used_by(mine)})


GANGS = st.lists(
    st.tuples(st.sampled_from(LEAVES), st.integers(1, 5), st.integers(0, 2)),
    min_size=6,
    max_size=9,
).map(tuple)
SHARES = st.builds(
    Shares,
    st.tuples(
        *(
            st.tuples(st.just(name), st.integers(0, 3), st.integers(0, 3), st.integers(1, 2))
            for name in ABOVE
        )
    ),
    GANGS,
)


def path(queue: QueueName | None) -> list[str]:
    """Return a queue and those above it, without the cluster."""
    found, name = [], str(queue).removeprefix("kai/")
    while name != "*":
        found.append(name)
        name = ABOVE[name]
    return found


def used(name: str, gangs: Sequence[Tenant]) -> int:
    """Return what a queue and those below it use."""
    return sum(each.amounts[GPU] for each in gangs if name in path(each.queue))


def sets(asked: RoomRules, running: Sequence[Tenant]) -> Iterator[tuple[Tenant, ...]]:
    """Yield the sets of up to three that may give way, and with which the quota suffices."""
    able = [each for each in running if asked.keeps(each) is None]
    for count in range(1, 4):
        for chosen in itertools.combinations(able, count):
            account = VictimAccount(asked)
            if all(account.add(each, each.amounts) for each in chosen) and account.suffices():
                yield chosen


def fill(case: Shares) -> tuple[list[Tenant], list[Tenant]]:
    """Return who runs, as many as have room in their order, and who waits."""
    running, waiting = list[Tenant](), list[Tenant]()
    for each in case.tenants():
        has_room = used_by(running) + each.amounts[GPU] <= GPUS
        (running if has_room else waiting).append(each)
    return running, waiting


def used_by(gangs: Sequence[Tenant]) -> int:
    return sum(each.amounts[GPU] for each in gangs)


def share(shares: GivenShares | object, name: str) -> int:
    assert isinstance(shares, GivenShares)
    found = shares.of(QueueName(f"kai/{name}"), GPU)
    assert found is not None
    return found


@given(SHARES)
@settings(max_examples=150, deadline=None)
def test_only_what_is_above_a_fair_share_or_a_quota_is_taken(case: Shares) -> None:
    """On each level below the queue above both; the last one may take a queue below its share."""
    running, waiting = fill(case)
    for wants in waiting:
        asked = case.rules(running, waiting, wants)
        for chosen in sets(asked, running):
            left = [each for each in running if each not in chosen]
            for each in chosen:
                if each.queue == wants.queue:
                    assert each.priority < wants.priority
                    continue
                mine = [one for one in path(wants.queue) if one not in path(each.queue)]
                theirs = [one for one in path(each.queue) if one not in path(wants.queue)]
                top = mine[-1]
                is_entitled = used(top, [*left, wants]) <= entitled(asked, top)
                for name in theirs:
                    due = entitled(asked, name) if is_entitled else share(asked.divided, name)
                    most = max(e.amounts[GPU] for e in chosen if name in path(e.queue))
                    assert used(name, left) + most > due
                if not is_entitled:
                    for name in mine:
                        assert used(name, [*left, wants]) <= share(asked.divided, name)


def entitled(asked: RoomRules, name: str) -> int:
    """Return what a queue is entitled to, as the tree has it."""
    node = asked.usage.find(QueueName(f"kai/{name}"))
    assert node is not None
    return asked.usage.entitled(node, GPU)


@given(SHARES)
@settings(max_examples=150, deadline=None)
def test_nobody_comes_back_and_no_sequence_of_takings_repeats(case: Shares) -> None:
    """Each set that the rules allow is stable. Who fits starts; the same gangs never run twice."""
    running, waiting = fill(case)
    seen = {frozenset(each.gang for each in running)}
    for _ in range(40):
        while (first := case.turns(running, waiting).first()) is not None:
            running += [each for each in waiting if each.gang == first.gang]
            waiting = [each for each in waiting if each.gang != first.gang]
        found = next(takings(case, running, waiting), None)
        if found is None:
            return
        wants, chosen = found
        running = [each for each in running if each not in chosen] + [wants]
        waiting = [each for each in waiting if each is not wants] + list(chosen)
        assert used_by(running) <= GPUS
        state = frozenset(each.gang for each in running)
        assert state not in seen
        seen.add(state)
    raise AssertionError("it goes on and on")


def takings(
    case: Shares, running: Sequence[Tenant], waiting: Sequence[Tenant]
) -> Iterator[tuple[Tenant, tuple[Tenant, ...]]]:
    """Yield who takes from whom, as the planner would have it: the cheapest set."""
    for wants in waiting:
        asked = case.rules(running, waiting, wants)
        found = [chosen for chosen in sets(asked, running) if does(asked, running, chosen)]
        if found:
            yield wants, min(found, key=cost)


def does(asked: RoomRules, running: Sequence[Tenant], chosen: Sequence[Tenant]) -> bool:
    """Return whether a set is enough and stable, and all of it is needed."""
    room = GPUS - used_by(running) + used_by(chosen)
    least = min(each.amounts[GPU] for each in chosen)
    if not room - least < asked.wants.amounts[GPU] <= room:
        return False
    gone = [(each, each.amounts) for each in chosen]
    if all(each.queue != asked.wants.queue for each in chosen):
        assert is_evener(asked, gone)
    return not returning(asked, gone) and is_evener(asked, gone)


def cost(chosen: Sequence[Tenant]) -> tuple[int, int, int]:
    """Return the highest priority disturbed, the GPUs that end and how many gangs."""
    return max(each.priority for each in chosen), used_by(chosen), len(chosen)
