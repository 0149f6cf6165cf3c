"""The planner on random queues, nodes and gangs: nobody gets more than a limit, no gang in part.

::

    cluster ─┬─ q0 ─ q1        gangs of 1 to 4 members come, end, and wait; queues change
             └─ q2             their numbers; time passes
"""

import asyncio

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from support.clusters.planners import Bench

from muster.cluster.events import QueueGone, QueueUpserted
from muster.cluster.ids import GangKey
from muster.cluster.quota.aliases import Spelling
from muster.cluster.quota.cells import UNLIMITED, Cell, Quota
from muster.cluster.quota.queuespec import QueueName, QueueSpec
from muster.cluster.resumable import run
from muster.placement.decision import Wait, WaitReason
from muster.workloads.queues.sight import whole_uses

GPU = Cell("", "nvidia.com/gpu")
ROOT = QueueName("muster/cluster")
NAMES = [QueueName(f"muster/q{number}") for number in range(3)]
PARENTS = {NAMES[0]: ROOT, NAMES[1]: NAMES[0], NAMES[2]: ROOT}


class Planning(RuleBasedStateMachine):
    @initialize(nodes=st.integers(1, 4))
    def start(self, nodes: int) -> None:
        self.bench, self.gangs, self.came = Bench(), dict[GangKey, int](), 0
        #: the least limit that a queue had while what runs now was admitted
        self.limits: dict[QueueName, int] = {}
        for number in range(nodes):
            self.bench.node(f"n{number}")
        self.bench.engine.apply(QueueUpserted(QueueSpec(ROOT, is_whole=True, is_cluster=True)))
        for name in NAMES:
            self.queue_appears(name=name, entitled=1, kept=0, more=1, weight=1000, is_strict=False)

    @rule(
        name=st.sampled_from(NAMES),
        entitled=st.integers(0, 4),
        kept=st.integers(0, 2),
        more=st.sampled_from([0, 1, 2, None]),
        weight=st.sampled_from([0, 1000, 2000]),
        is_strict=st.booleans(),
    )
    def queue_appears(
        self,
        *,
        name: QueueName,
        entitled: int,
        kept: int,
        more: int | None,
        weight: int,
        is_strict: bool,
    ) -> None:
        limit = UNLIMITED if more is None else 8 * (entitled + more)
        quota = Quota(8 * entitled, 8 * max(entitled - kept, 0), limit=limit)
        spec = QueueSpec(
            name, PARENTS[name], {GPU: quota}, weight, is_whole=True, is_strict=is_strict
        )
        self.bench.engine.apply(QueueUpserted(spec, (Spelling("", name[-2:]),)))
        node = self.bench.state.charges.tree.find(name)
        assert node is not None
        self.limits[name] = limit
        for each in self.limits:  # what it was charged before it went counts above it again
            self.limits[each] = max(self.limits[each], self.used(each))
        self.planner_runs()

    def used(self, name: QueueName) -> int:
        """Return what a queue and all below it use."""
        return run(whole_uses(self.bench.state.charges.tree)).get(name, {}).get(GPU, 0)

    @rule(name=st.sampled_from(NAMES))
    def queue_goes(self, name: QueueName) -> None:
        self.bench.engine.apply(QueueGone(name))
        self.limits.pop(name, None)

    @rule(
        size=st.integers(1, 4),
        elastic=st.booleans(),
        queue=st.sampled_from(["q0", "q1", "q2", "q2", ""]),
        priority=st.integers(0, 2),
    )
    def gang_comes(self, *, size: int, elastic: bool, queue: str, priority: int) -> None:
        self.came += 1
        least = 1 if elastic else size
        key = self.bench.gang(
            f"g{self.came}",
            size,
            queue=queue,
            priority=priority,
            at=float(self.came),
            min_count=least,
        )
        self.gangs[key] = least
        self.planner_runs()

    @precondition(lambda self: self.gangs)
    @rule(data=st.data())
    def gang_ends(self, data: st.DataObject) -> None:
        key = data.draw(st.sampled_from(sorted(self.gangs)))
        del self.gangs[key]
        self.bench.end(key)
        self.planner_runs()

    def planner_runs(self) -> None:
        asyncio.run(self.bench.planner.settle())
        for key in self.gangs:
            decision = self.bench.planner.decisions.get(key)
            if isinstance(decision, Wait) and decision.reason is WaitReason.OVER_QUOTA:
                assert decision.explanation.cause

    @invariant()
    def what_is_charged_is_what_runs(self) -> None:
        self.bench.state.validate()

    @invariant()
    def no_gang_runs_in_part(self) -> None:
        for key, least in self.gangs.items():
            view = self.bench.state.gang(key)
            placed = 0 if view is None else len(view.released) + len(view.assumed)
            assert placed == 0 or placed >= least, key

    @invariant()
    def no_queue_uses_more_than_its_limit(self) -> None:
        for name, limit in self.limits.items():
            used = self.used(name)
            assert used <= limit, (name, used, limit)


TestPlanning = Planning.TestCase


def test_what_a_queue_that_comes_again_uses_counts_above_it_again() -> None:
    """Queue q1 goes with a gang that runs and comes again, below a q0 that may use nothing."""
    planning, nothing = Planning(), {"entitled": 0, "kept": 0, "more": 0, "weight": 0}
    planning.start(nodes=1)
    planning.gang_comes(size=1, elastic=False, queue="q1", priority=0)
    planning.queue_goes(name=NAMES[1])
    planning.queue_appears(name=NAMES[0], is_strict=False, **nothing)
    planning.queue_appears(name=NAMES[1], is_strict=False, **nothing)
    planning.no_queue_uses_more_than_its_limit()
