"""Who gives way in random trees of queues, counted from outside.

::

    cluster ─┬─ p ─┬─ a        eight nodes of 8 GPUs, seven or eight gangs of one
             │     └─ b        node each, and one gang that waits
             ├─ q ─── c
             └─ d

Sums are made here from the gangs alone. Nothing is kept back: a queue and those below it use what
their gangs do, and are entitled to the sum of what each is entitled to.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from hypothesis import given, settings
from hypothesis import strategies as st
from support.clusters.roomscene import GPUS, NOW, ROOT, RoomScene, queue_name

from muster.cluster.ids import GangKey
from muster.cluster.quota.cells import Quota
from muster.decisions.roomplan import NoRoom, RoomAnswer, RoomPlan, RoomRight

ABOVE = {"a": "p", "b": "p", "c": "q", "d": "", "p": "", "q": ""}
LEAVES, NODES = "abcd", 8
Entitled = dict[str, int]


@dataclass(frozen=True, slots=True)
class TreeCase:
    """Queues, and who runs and waits."""

    entitled: Entitled
    #: (queue, priority) of the gang on each node
    runs: tuple[tuple[str, int], ...]
    #: (queue, priority, nodes) of the gang that waits
    wants: tuple[str, int, int]

    def scene(self, *, reverse: bool = False) -> tuple[RoomScene, GangKey]:
        """Return the cluster, its queues and gangs made in this order, or in the other one."""
        scene = RoomScene("a/r1 " + " ".join(f"n{at}" for at in range(NODES)))
        step = -1 if reverse else 1
        for name, above in [*ABOVE.items()][::step]:
            parent = queue_name(above) if above else ROOT
            scene.queue(name, {GPUS: Quota(8 * self.entitled[name])}, parent)
        for at, (queue, priority) in [*enumerate(self.runs)][::step]:
            scene.runs(f"g{at}", [f"n{at}"], queue=queue, priority=priority, since=NOW - 100)
        queue, priority, nodes = self.wants
        return scene, scene.wants("w", nodes, queue=queue, priority=priority)

    def used(self, queue: str, gone: frozenset[int] = frozenset()) -> int:
        """Return the nodes that a queue and those below it use without some gangs."""
        below = [name for name in LEAVES if queue in path(name)]
        return sum(of in below for at, (of, _) in enumerate(self.runs) if at not in gone)

    def due(self, queue: str) -> int:
        """Return the nodes that a queue and those below it are entitled to."""
        return sum(n for name, n in self.entitled.items() if queue in path(name))


def path(name: str) -> list[str]:
    """Return a queue and those above it, without the cluster."""
    return [name, *(path(ABOVE[name]) if ABOVE[name] else [])]


def apart(name: str, other: str) -> list[str]:
    """Return a queue and those above it that are not above another one."""
    return [each for each in path(name) if each not in path(other)]


LEAF, PRIORITY = st.sampled_from(LEAVES), st.integers(0, 2)
CASES = st.builds(
    TreeCase,
    st.fixed_dictionaries({name: st.integers(0, 3) for name in ABOVE}),
    st.lists(st.tuples(LEAF, PRIORITY), min_size=NODES - 1, max_size=NODES).map(tuple),
    st.tuples(LEAF, PRIORITY, st.integers(1, 4)),
)


def asked(case: TreeCase, *, reverse: bool = False) -> RoomAnswer:
    scene, key = case.scene(reverse=reverse)
    return scene.room(key)


def gone(answer: RoomPlan) -> frozenset[int]:
    """Return the gangs that end, by number."""
    return frozenset(int(victim.gang.rpartition("/g")[2]) for victim in answer.victims)


def reclaimed(case: TreeCase, answer: RoomPlan) -> Iterator[str]:
    """Yield the queues, other than that of the gang, from which room is taken back."""
    for victim in answer.victims:
        if victim.right is RoomRight.RECLAIM:
            yield case.runs[int(victim.gang.rpartition("/g")[2])][0]


@given(CASES)
@settings(max_examples=100, deadline=None)
def test_nobody_within_what_it_is_entitled_to_gives_way_to_another_queue(case: TreeCase) -> None:
    """kueue#9466, kueue#10131: on no level, neither before nor by it."""
    answer = asked(case)
    if isinstance(answer, NoRoom):
        return
    for queue in reclaimed(case, answer):
        for name in apart(queue, case.wants[0]):
            assert case.used(name) > case.due(name)
            assert case.used(name, gone(answer)) >= case.due(name)


@given(CASES)
@settings(max_examples=100, deadline=None)
def test_a_queue_takes_back_no_more_than_it_is_entitled_to(case: TreeCase) -> None:
    """kueue#9466: just below the queue above both; inside a queue only the priority counts."""
    answer = asked(case)
    if isinstance(answer, NoRoom):
        return
    queue, priority, nodes = case.wants
    for other in reclaimed(case, answer):
        top = apart(queue, other)[-1]
        assert case.used(top, gone(answer)) + nodes <= case.due(top)
    for victim in answer.victims:
        if victim.right is RoomRight.PRIORITY:
            of, its = case.runs[int(victim.gang.rpartition("/g")[2])]
            assert (of, its < priority) == (queue, True)


@given(CASES)
@settings(max_examples=50, deadline=None)
def test_the_order_in_which_queues_and_gangs_came_decides_nothing(case: TreeCase) -> None:
    """kueue#9734: hierarchical fair sharing is not deterministic."""
    one, other = asked(case), asked(case, reverse=True)
    if isinstance(one, RoomPlan) and isinstance(other, RoomPlan):
        assert [victim.gang for victim in one.victims] == [v.gang for v in other.victims]
        return
    assert isinstance(one, NoRoom)
    assert isinstance(other, NoRoom)
    assert (one.reason, one.keeps) == (other.reason, other.keeps)
