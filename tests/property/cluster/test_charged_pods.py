"""Queues come, go and move while pods are charged: what is charged is what it would be anew.

::

    q0 ── q1 ── q2     any of them may have a quota of pods, any parent (itself and cycles too);
    └──── q3           pods are counted in a queue that has one, and in those below it
"""

from hypothesis import example, given
from hypothesis import strategies as st

from muster.cluster.quota.aliases import QueueUser, Spelling
from muster.cluster.quota.audit import audit_charges
from muster.cluster.quota.cells import Cell, Quota
from muster.cluster.quota.charges import PODS, Bill, QueueCharges
from muster.cluster.quota.queuespec import QueueName, QueueSpec

Q0, Q1, Q2, Q3 = NAMES = tuple(QueueName(f"muster/q{number}") for number in range(4))
USERS = {name: QueueUser("muster", "ns", name.partition("/")[2]) for name in NAMES}
Put = st.tuples(st.sampled_from(NAMES), st.none() | st.sampled_from(NAMES), st.booleans())
Step = Put | st.sampled_from(NAMES) | st.sampled_from(NAMES).map(lambda name: (name,))


def put(charges: QueueCharges, name: QueueName, parent: QueueName | None, *, pods: bool) -> None:
    quotas = {Cell("", "cpu"): Quota(8), **({Cell("", PODS): Quota(4)} if pods else {})}
    charges.put(QueueSpec(name, parent, quotas), [Spelling("ns", USERS[name].text)])


@given(steps=st.lists(Step, max_size=12))
@example(steps=[(Q1, Q0, False), Q1, (Q0, None, True), (Q0,)])
@example(steps=[(Q0, None, True), (Q1, Q0, False), Q1, (Q1, None, False)])
@example(steps=[(Q2, Q1, False), (Q1, Q0, False), Q2, (Q0, None, True)])
def test_what_is_charged_is_what_the_pods_of_each_would_be_charged_now(
    steps: list[tuple[QueueName, QueueName | None, bool] | tuple[QueueName] | QueueName],
) -> None:
    """A step puts a queue (name, parent, quota of pods), removes one, or runs a pod of its user."""
    charges, bills = QueueCharges(), dict[Bill, int]()
    for step in steps:
        if isinstance(step, str):
            bill = Bill(USERS[step], (("cpu", 1), (PODS, 1)))
            charges.charge(bill)
            bills[bill] = bills.get(bill, 0) + 1
        elif len(step) == 1:
            charges.remove(step[0])
        else:
            name, parent, pods = step
            put(charges, name, parent, pods=pods)
        audit_charges(charges, bills)
    for bill, count in bills.items():
        for _ in range(count):
            charges.give_back(bill)
    assert not charges.accounts()
    assert all(not node.usage for node in charges.tree.nodes())
