"""Whether a set may give way, against every order in which its gangs could go.

::

    all ─┬─ wants   entitled to much
         └─ above ─┬─ a   entitled to some, keeps some of that
                   └─ b   the same
"""

import itertools
from collections.abc import Sequence
from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from muster.cluster.ids import GangKey
from muster.cluster.quota.cells import Cell, Quota
from muster.cluster.quota.preemptionpolicy import (
    FAIR_RULES,
    FairRule,
    PreemptionPolicy,
    ReclaimFloor,
)
from muster.cluster.quota.queuespec import QueueName, QueueSpec
from muster.cluster.quota.tree import QuotaTree
from muster.queueing.preemption.policies import PreemptionPolicies, RoomPermission
from muster.queueing.preemption.rules import RoomRules
from muster.queueing.preemption.stability import is_evener, returning
from muster.queueing.preemption.tenant import Tenant
from muster.queueing.preemption.usagetrial import UsageTrial
from muster.queueing.preemption.victimaccount import VictimAccount

GPU = Cell("", "gpu")
ALL, WANTS, ABOVE = map(QueueName, ("muster/all", "muster/wants", "muster/above"))
A, B = QueueName("muster/a"), QueueName("muster/b")
GANGS = st.lists(st.tuples(st.sampled_from([A, B]), st.integers(1, 6)), min_size=1, max_size=5)
ENTITLED = st.integers(0, 8)
FLOORS = st.sampled_from([ReclaimFloor.KEPT, ReclaimFloor.ZERO])


def rules(a: int, b: int, kept: int, floor: ReclaimFloor, gangs: Sequence[Tenant]) -> RoomRules:
    """Return the rules for a gang that wants room, with all gangs running."""
    tree, policy = QuotaTree(), PreemptionPolicy(floor=floor)
    tree.put(QueueSpec(ALL, quotas={GPU: Quota(100)}))
    tree.put(QueueSpec(WANTS, ALL, {GPU: Quota(100)}))
    tree.put(QueueSpec(ABOVE, ALL))
    for name, entitled in ((A, a), (B, b)):
        quota = Quota(entitled, lendable=max(entitled - kept, 0))
        tree.put(QueueSpec(name, ABOVE, {GPU: quota}, preemption=policy))
    for gang in gangs:
        assert gang.queue is not None
        tree.charge(gang.queue, gang.amounts)
    wants = Tenant(GangKey("muster/ns/w"), WANTS, amounts={GPU: 1})
    return RoomRules(wants, UsageTrial(tree), PreemptionPolicies(), 0.0, {}, frozenset({GPU}))


def goes_one_by_one(asked: RoomRules, order: Sequence[Tenant]) -> bool:
    """Return whether each gang may go when its turn comes, as the schedulers look at it."""
    usage = asked.usage.copy()
    for gang in order:
        there = usage.find(gang.queue)
        assert there is not None
        assert there.parent is not None
        nodes = (there, there.parent)
        if not all(usage.borrows(node, GPU) for node in nodes):
            return False
        usage.give_back(gang.queue, gang.amounts)
        if there.spec.preemption.floor is ReclaimFloor.KEPT and any(
            usage.used(node, GPU) < usage.kept(node, GPU) for node in nodes
        ):
            return False
    return True


@given(ENTITLED, ENTITLED, st.integers(0, 3), FLOORS, GANGS)
def test_a_set_may_go_just_if_there_is_an_order_in_which_each_may(
    a: int, b: int, kept: int, floor: ReclaimFloor, drawn: list[tuple[QueueName, int]]
) -> None:
    gangs = [
        Tenant(GangKey(f"muster/ns/g{n}"), queue, amounts={GPU: amount})
        for n, (queue, amount) in enumerate(drawn)
    ]
    asked = rules(a, b, kept, floor, gangs)
    expected = any(goes_one_by_one(asked, order) for order in itertools.permutations(gangs))
    for order in (gangs, gangs[::-1]):
        account = VictimAccount(asked)
        assert all(account.add(gang, gang.amounts) for gang in order) == expected


@given(ENTITLED, ENTITLED, FLOORS, GANGS)
def test_a_gang_that_is_dropped_leaves_nothing_behind(
    a: int, b: int, floor: ReclaimFloor, drawn: list[tuple[QueueName, int]]
) -> None:
    gangs = [
        Tenant(GangKey(f"muster/ns/g{n}"), queue, amounts={GPU: amount})
        for n, (queue, amount) in enumerate(drawn)
    ]
    asked = rules(a, b, 0, floor, gangs)
    account = VictimAccount(asked)
    first = [account.add(gang, gang.amounts) for gang in gangs]
    for gang in gangs:
        account.drop(gang, gang.amounts)
    assert [account.add(gang, gang.amounts) for gang in gangs] == first


# --- by shares --------------------------------------------------------------------------------


SHARED_ALL, SHARED_WANTS, SHARED_ABOVE, SHARED_A, SHARED_B = map(
    QueueName, ("kueue/all", "kueue/wants", "kueue/above", "kueue/a", "kueue/b")
)
FAIR = st.sampled_from([(FairRule.FINAL,), (FairRule.INITIAL,), FAIR_RULES])


def by_shares(
    weights: tuple[int, int],
    entitled: int,
    asked: int,
    gangs: Sequence[Tenant],
    fair: tuple[FairRule, ...],
) -> RoomRules:
    """Return the rules for a gang whose queue is entitled to nothing; ``above`` lends all."""
    tree, policy = QuotaTree(), PreemptionPolicy(floor=ReclaimFloor.ZERO)
    tree.put(QueueSpec(SHARED_ALL, quotas={GPU: Quota(100)}))
    for name, weight in zip((SHARED_WANTS, SHARED_ABOVE), weights, strict=True):
        tree.put(QueueSpec(name, SHARED_ALL, weight=weight, preemption=policy))
    for name in (SHARED_A, SHARED_B):
        tree.put(QueueSpec(name, SHARED_ABOVE, {GPU: Quota(entitled)}, preemption=policy))
    for gang in gangs:
        assert gang.queue is not None
        tree.charge(gang.queue, gang.amounts)
    wants = Tenant(GangKey("kueue/ns/w"), SHARED_WANTS, amounts={GPU: asked})
    policies = PreemptionPolicies({"kueue": RoomPermission()}, fair=fair)
    return RoomRules(wants, UsageTrial(tree), policies, 0.0, {}, frozenset({GPU}))


def goes_by_shares(
    asked: RoomRules, order: Sequence[Tenant], fair: tuple[FairRule, ...], weights: tuple[int, int]
) -> bool:
    """Return whether each gang may go when its turn comes, as Kueue looks at them."""
    usage = asked.usage.copy()
    above = usage.find(SHARED_ABOVE)
    assert above is not None
    claimed = Fraction(asked.wants.amounts[GPU], weights[0])

    def theirs() -> Fraction:
        return Fraction(max(0, usage.used(above, GPU) - usage.entitled(above, GPU)), weights[1])

    for gang in order:
        there, before = usage.find(gang.queue), theirs()
        assert there is not None
        if not all(usage.borrows(node, GPU) for node in (there, above)):
            return False
        usage.give_back(gang.queue, gang.amounts)
        is_final = FairRule.FINAL in fair and claimed <= theirs()
        if not is_final and not (FairRule.INITIAL in fair and claimed < before):
            return False
    return True


@given(
    st.tuples(st.integers(1, 3), st.integers(1, 3)), ENTITLED, st.integers(1, 8), FAIR,
    st.lists(st.tuples(st.sampled_from([SHARED_A, SHARED_B]), st.integers(1, 6)), min_size=1,
             max_size=5),
)  # fmt: skip
def test_a_set_goes_by_shares_just_if_there_is_an_order_in_which_each_may(
    weights: tuple[int, int],
    entitled: int,
    amount: int,
    fair: tuple[FairRule, ...],
    drawn: list[tuple[QueueName, int]],
) -> None:
    gangs = [
        Tenant(GangKey(f"kueue/ns/g{n}"), queue, amounts={GPU: taken})
        for n, (queue, taken) in enumerate(drawn)
    ]
    asked = by_shares(weights, entitled, amount, gangs, fair)
    expected = any(
        goes_by_shares(asked, order, fair, weights) for order in itertools.permutations(gangs)
    )
    for order in (gangs, gangs[::-1]):
        account = VictimAccount(asked)
        may_go = [account.add(gang, gang.amounts) for gang in order]
        assert (all(may_go) and account.suffices()) == expected
        gone = [(gang, gang.amounts) for gang in gangs]
        if expected and fair == (FairRule.FINAL,):  # by the other rule a small one could come back
            assert is_evener(asked, gone)
            assert not returning(asked, gone)
