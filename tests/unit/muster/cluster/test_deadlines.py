"""Deadlines are looked at some at a time: a second's are those of a thousand pods.

rack r1: n1 n2        g-0, g-1 are held there, until one moment
"""

from support.clusters.builders import NOW, apply, fleet, gang, plan, state, uid

from muster.cluster.events import Tick

ROOM = """
    rack r1: n1 n2
"""
MEMBERS = uid("ns/g-0#0"), uid("ns/g-1#0")


def test_of_many_deadlines_some_are_looked_at_in_one_tick() -> None:
    cluster = state(fleet(ROOM), gang("g", 2))
    apply(cluster, plan("g", {"g-0": "n1", "g-1": "n2"}, deadline=NOW + 5))
    assert not cluster.is_due(NOW + 4)
    for left in (1, 0):
        apply(cluster, Tick(most=1), now=NOW + 5)
        assert sum(cluster.hold(pod) is not None for pod in MEMBERS) == left
        assert cluster.is_due(NOW + 5) is bool(left)
