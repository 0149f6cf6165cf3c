"""`muster bench order`: how long it takes to say who is next among many queues and gangs.

::

    whole ── some 100 departments ── the queues, ten GPUs each ── gangs of 1 to 64 GPUs

    decision   ask who is next, charge the gang, take it off the list: until nobody fits, then
               a gang ends and the next one is asked for, so that all queues borrow and lend
    change     one queue gets other numbers
    arrival    one more gang waits
    head       Kueue's Workloads with fair sharing, one in each of ``heads`` ClusterQueues in ten
               cohorts: a pass over all of them, by the number of heads. Half of them fit

No planner, no API server: this is what quotas cost on top of a plan. Times are CPU time.
"""

import gc
import random
import statistics
import time
from dataclasses import dataclass, replace
from typing import Final

from muster.cluster.claims import ClaimKey, ClaimPart, QuotaClaim
from muster.cluster.events import QueueUpserted
from muster.cluster.ids import GangKey
from muster.cluster.quota.aliases import QueueUser, Spelling
from muster.cluster.quota.cells import Cell, Quota
from muster.cluster.quota.flavors import Flavor, ResourceGroup
from muster.cluster.quota.preemptionpolicy import FAIR_RULES, NO_PREEMPTION
from muster.cluster.quota.queuespec import QueueName, QueueSpec
from muster.cluster.quota.tree import QuotaTree
from muster.queueing.admission.applicant import Applicant
from muster.queueing.admission.turn import Turns
from muster.queueing.claims.book import ClaimBook

_GPU: Final = Cell("", "nvidia.com/gpu")
_DEPARTMENTS: Final = 100
_ENTITLED: Final = 10
_SIZES: Final = (1, 2, 4, 8, 16, 32, 64)
_CHANGES: Final = 200
_COHORTS: Final = 10
_CPUS: Final = (5, 10, 30, 40)  # of 10 that a ClusterQueue is entitled to


@dataclass(frozen=True, slots=True)
class Settings:
    """What is asked on the command line."""

    queues: int
    gangs: int
    decisions: int
    seed: int
    #: ClusterQueues with a Workload that waits, for the pass with fair sharing
    heads: int = 200

    def __post_init__(self) -> None:
        """Refuse what cannot be measured."""
        for name in ("queues", "gangs", "decisions", "heads"):
            if getattr(self, name) < 1:
                raise ValueError(f"--{name}: {getattr(self, name)} is not allowed: 1 or more")


def run(settings: Settings) -> dict[str, float]:
    """Measure; returns the figures under the keys that the module explains, p99 and median."""
    draw = random.Random(settings.seed)
    tree = QuotaTree()
    leaves = _queues(tree, settings.queues)
    turns = Turns(tree)
    began = time.process_time()
    turns.waiting.add_all(_gangs(leaves, settings.gangs, draw))
    listed_s = time.process_time() - began
    gc.collect()
    gc.freeze()  # as the extender does once its lists are read
    found = {
        "decision": _decisions(tree, turns, settings.decisions, draw),
        "change": _changes(tree, turns, leaves, draw),
        "arrival": _arrivals(turns, leaves, draw),
    }
    gc.unfreeze()
    figures = {"queues": float(len(tree)), "gangs": float(settings.gangs), "listed_s": listed_s}
    for name, took in found.items():
        figures[f"{name}_ms"] = sorted(took)[len(took) * 99 // 100]
        figures[f"{name}_median_ms"] = statistics.median(took)
    figures["heads"] = float(settings.heads)
    figures["head_ms"] = _fair_pass(settings.heads, draw)
    return figures


def _queues(tree: QuotaTree, count: int) -> list[QueueName]:
    """Make the tree; returns the queues that gangs name."""
    whole = QueueName("whole")
    tree.put(QueueSpec(whole))
    leaves = []
    for number in range(count):
        department = QueueName(f"department-{number % _DEPARTMENTS}")
        if tree.find(department) is None:
            tree.put(QueueSpec(department, whole))
        leaves.append(QueueName(f"queue-{number}"))
        quotas = {_GPU: Quota(_ENTITLED, borrowable=5 * _ENTITLED)}
        tree.put(QueueSpec(leaves[-1], department, quotas))
    return leaves


def _gangs(leaves: list[QueueName], count: int, draw: random.Random) -> list[Applicant]:
    return [
        Applicant(
            gang=GangKey(f"bench/gang-{number}"),
            queue=draw.choice(leaves),
            request={_GPU: draw.choice(_SIZES)},
            priority=draw.randrange(3),
            since=float(number),
        )
        for number in range(count)
    ]


def _decisions(tree: QuotaTree, turns: Turns, count: int, draw: random.Random) -> list[float]:
    """Admit gangs, and let one end whenever nobody fits; returns milliseconds of each decision."""
    running: list[Applicant] = []
    took = []
    for _ in range(count):
        began = time.process_time()
        found = turns.first()
        if found is not None:
            tree.charge(found.queue, found.request)
            turns.waiting.drop(found.gang)
            turns.changed([found.queue])
        took.append((time.process_time() - began) * 1e3)
        if found is not None:
            running.append(found)
        elif running:
            ended = running.pop(draw.randrange(len(running)))
            tree.give_back(ended.queue, ended.request)
            turns.changed([ended.queue])
    return took


def _changes(
    tree: QuotaTree, turns: Turns, leaves: list[QueueName], draw: random.Random
) -> list[float]:
    """Change queues; returns milliseconds of each change."""
    took = []
    for name in draw.choices(leaves, k=_CHANGES):
        node = tree.find(name)
        if node is None:
            raise AssertionError("a queue of the bench is gone")
        spec = replace(node.spec, quotas={_GPU: Quota(draw.randrange(2 * _ENTITLED))})
        began = time.process_time()
        tree.put(spec)
        turns.changed([name])
        took.append((time.process_time() - began) * 1e3)
    return took


def _arrivals(turns: Turns, leaves: list[QueueName], draw: random.Random) -> list[float]:
    """Let gangs arrive; returns milliseconds of each."""
    took = []
    for number in range(_CHANGES):
        one = Applicant(GangKey(f"bench/late-{number}"), draw.choice(leaves), {_GPU: 8})
        began = time.process_time()
        turns.waiting.add(one)
        took.append((time.process_time() - began) * 1e3)
    return took


def _fair_pass(heads: int, draw: random.Random) -> float:
    """Decide about all heads with Kueue's fair sharing; returns milliseconds for each."""
    book = ClaimBook(lambda _flavor: (), lambda _namespace: {}, FAIR_RULES)
    root, group = QueueName("kueue/cohort/all"), ResourceGroup(("cpu",), (Flavor("f"),))
    book.queue(QueueUpserted(QueueSpec(root)))
    for number in range(_COHORTS):
        book.queue(QueueUpserted(QueueSpec(_cohort(number), root)))
    for number in range(heads):
        quotas = {Cell("f", "cpu"): Quota(_ENTITLED, borrowable=5 * _ENTITLED)}
        spec = QueueSpec(
            QueueName(f"kueue/{number}"),
            _cohort(number % _COHORTS),
            quotas,
            preemption=NO_PREEMPTION,  # this is about whose turn it is
        )
        book.queue(QueueUpserted(spec, (Spelling("bench", str(number)),), (), (group,)))
    for number in range(heads):
        part = ClaimPart("main", 1, (("cpu", draw.choice(_CPUS)),))
        user = QueueUser("kueue", "bench", str(number))
        key = ClaimKey(f"bench/{number}")
        book.seen(QuotaClaim(key, str(number), user, (part,), since=float(number), version=1))
    began = time.process_time()
    given = len(book.decide(0.0))
    took = time.process_time() - began
    if not 0 < given < heads:
        raise AssertionError(f"of {heads} heads {given} fit: some, not all of them, should")
    return took * 1e3 / heads


def _cohort(number: int) -> QueueName:
    return QueueName(f"kueue/cohort/{number}")
