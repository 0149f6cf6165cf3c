"""The same three teams in the objects of four dialects, and who is admitted when.

::

    8 GPUs ── a   entitled to 4
           ├─ b   entitled to 4
           └─ c   entitled to nothing, may borrow

Objects are read, put into the catalogue, and the tree is asked until nobody fits. Orders are equal
where Muster obeys one rule for all: begun gangs, then who stays within the entitlement. Kueue
(pkg/scheduler/fair_sharing_iterator.go) and KAI (proportion/queue_order) have that rule themselves.
Volcano (capacity.go, ``AddQueueOrderFn``) and YuniKorn (sorting_policies.md) compare what a queue
uses with what it deserves, which for c is nothing at all: they leave open, or to chance, whether c
goes before a and b while nobody has anything; Muster does not.

Where the projects contradict each other the differences are asserted, with the source of each.
"""

from dataclasses import replace
from typing import Any

import msgspec
import pytest
from support.clusters.queuenames import resolved
from support.machine import quickyaml

from muster.cluster.ids import GangKey
from muster.cluster.quota.audit import audit
from muster.cluster.quota.cells import Cell, Quota
from muster.cluster.quota.queuespec import QueueName
from muster.cluster.quota.tree import QuotaTree
from muster.queueing.admission.applicant import Applicant
from muster.queueing.admission.turn import Turns
from muster.workloads.queues.catalogue import QueueCatalogue, QueueChanges
from muster.workloads.queues.reading import QueueReading
from muster.workloads.queues.registry import KINDS
from muster.workloads.queues.yunikorn import queues_yaml

GPU = "nvidia.com/gpu"
NODES = {Cell("", GPU): Quota(8)}
NAMESPACE = "research"

FLAVOR = """
apiVersion: kueue.x-k8s.io/v1beta2
kind: ResourceFlavor
metadata: {name: h100}
---
"""
KUEUE = FLAVOR + "\n---\n".join(
    f"""
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {{name: team-{team}}}
spec:
  cohortName: all
  namespaceSelector: {{}}
  resourceGroups:
  - coveredResources: [nvidia.com/gpu]
    flavors:
    - name: h100
      resources: [{{name: nvidia.com/gpu, nominalQuota: {gpus}}}]  # {team}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: LocalQueue
metadata: {{name: {team}, namespace: {NAMESPACE}}}
spec: {{clusterQueue: team-{team}}}
"""
    for team, gpus in (("a", 4), ("b", 4), ("c", 0))
)
VOLCANO = """
apiVersion: scheduling.volcano.sh/v1beta1
kind: Queue
metadata: {name: a}
spec: {deserved: {nvidia.com/gpu: 4}}
---
apiVersion: scheduling.volcano.sh/v1beta1
kind: Queue
metadata: {name: b}
spec: {deserved: {nvidia.com/gpu: 4}}
---
apiVersion: scheduling.volcano.sh/v1beta1
kind: Queue
metadata: {name: c}
spec: {weight: 1}
"""
KAI = "\n---\n".join(
    f"""
apiVersion: scheduling.run.ai/v2
kind: Queue
metadata: {{name: {team}}}
spec:
  priority: 100  # {team}
  resources:
    gpu: {{quota: {gpus}, limit: -1, overQuotaWeight: 1}}  # {team}
"""
    for team, gpus in (("a", 4), ("b", 4), ("c", 0))
)
YUNIKORN = """
partitions:
  - name: default
    queues:
      - name: root
        queues:
          - name: a
            resources: {guaranteed: {nvidia.com/gpu: 4}}
          - name: b
            resources: {guaranteed: {nvidia.com/gpu: 4}}
          - name: c
            properties: {application.sort.policy: fifo}
"""
STRICT = "metadata: {name: team-c}\nspec:\n  queueingStrategy: StrictFIFO"
DIALECTS = {"kueue": KUEUE, "volcano": VOLCANO, "kai": KAI, "yunikorn": YUNIKORN}


def readings(dialect: str, text: str) -> dict[str, QueueReading]:
    """Return what all objects say, by source."""
    if dialect == "yunikorn":
        return {"queues.yaml": queues_yaml(text)}
    return dict(map(reading_of, quickyaml.load_all(text)))


def reading_of(written: Any) -> tuple[str, QueueReading]:
    group, plural = written["apiVersion"].partition("/")[0], f"{written['kind'].lower()}s"
    kind = next(one for one in KINDS if (one.group, one.plural) == (group, plural))
    source = f"{written['kind']} {written['metadata']['name']}"
    return source, kind.read(msgspec.convert(written, kind.type))


class Teams:
    """The three teams in one dialect; each swap (old, new) changes its text."""

    def __init__(self, dialect: str, *swaps: tuple[str, str]) -> None:
        self.dialect = dialect
        text = DIALECTS[dialect]
        for old, new in swaps:
            assert old in text, old
            text = text.replace(old, new)
        self.catalogue, self.tree = QueueCatalogue(), QuotaTree()
        for source, reading in readings(dialect, text).items():
            self.take(self.catalogue.put(source, reading))
            assert (self.catalogue.problems(source), reading.unobeyed) == ((), ())
        self.turns = Turns(self.tree)
        self.came = 0
        self.charged: dict[QueueName, dict[Cell, int]] = {}

    def take(self, changes: QueueChanges) -> None:
        """Carry changes into the tree, and fill in what the nodes have."""
        for spec in changes.put:
            self.tree.put(replace(spec, quotas=NODES) if spec.is_cluster else spec)

    def wait(self, *gangs: tuple[str, int]) -> None:
        """Let gangs wait: (name, GPUs); the first letter is the team's."""
        for name, gpus in gangs:
            self.came += 1
            queue = resolved(self.catalogue, NAMESPACE, self.dialect, name[0])
            assert queue is not None, name
            groups = self.catalogue.groups(queue)
            flavor = "" if groups is None else groups[0].flavors[0]
            request = {Cell(flavor, GPU): gpus}
            self.turns.waiting.add(Applicant(GangKey(name), queue, request, since=float(self.came)))

    def admit(self) -> list[str]:
        """Admit everybody whose turn comes; returns their names in order."""
        admitted = []
        while (found := self.turns.first()) is not None:
            self.tree.charge(found.queue, found.request)
            own = self.charged.setdefault(found.queue, {})
            for cell, gpus in found.request.items():
                own[cell] = own.get(cell, 0) + gpus
            self.turns.waiting.drop(found.gang)
            self.turns.changed({found.queue})
            admitted.append(str(found.gang))
        audit(self.tree, self.charged)
        return admitted


ALL = pytest.mark.parametrize("dialect", DIALECTS)


def orders(*gangs: tuple[str, int], **swaps: tuple[str, str]) -> dict[str, list[str]]:
    """Return whom each dialect admits; the swaps by dialect."""
    found = {}
    for dialect in DIALECTS:
        teams = Teams(dialect, *([swaps[dialect]] if dialect in swaps else []))
        teams.wait(*gangs)
        found[dialect] = teams.admit()
    return found


# --- where the dialects agree ---------------------------------------------------------------------


@ALL
def test_who_stays_within_the_entitlement_goes_before_who_borrows(dialect: str) -> None:
    teams = Teams(dialect)
    teams.wait(("c1", 2), ("a1", 4), ("b1", 4))
    assert teams.admit() == ["a1", "b1"]


@ALL
def test_whoever_is_alone_borrows_all_there_is(dialect: str) -> None:
    teams = Teams(dialect)
    teams.wait(("c1", 8))
    assert teams.admit() == ["c1"]
    teams.wait(("a1", 1))
    assert teams.admit() == []


@ALL
def test_nobody_gets_more_than_there_is(dialect: str) -> None:
    teams = Teams(dialect)
    teams.wait(("a1", 9), ("c1", 5), ("c2", 4), ("c3", 3))
    assert teams.admit() == ["c1", "c3"]


# --- where they do not ----------------------------------------------------------------------------


def test_priority_of_a_queue_goes_before_entitlement_in_volcano_and_yunikorn_alone() -> None:
    """Volcano: capacity.go compares priorities first. YuniKorn: priorities.md, a fenced queue.

    KAI: queue_order.go asks ``prioritizeUnderQuotaWithJob`` before ``prioritizePrioritized``. Kueue
    has no priority of queues.
    """
    found = orders(
        ("a1", 4),
        ("b1", 2),
        ("c1", 6),
        volcano=("{weight: 1}", "{priority: 10}"),
        kai=("priority: 100  # c", "priority: 200"),
        yunikorn=(
            "{application.sort.policy: fifo}",
            "{priority.policy: fence, priority.offset: 10}",
        ),
    )
    assert found == {
        "kueue": ["a1", "b1"],
        "volcano": ["c1", "b1"],
        "kai": ["a1", "b1"],
        "yunikorn": ["c1", "b1"],
    }


def test_of_those_who_borrow_kueue_and_kai_count_what_they_would_have_volcano_what_they_have() -> (
    None
):
    """c has nothing, so that it uses no part of anything: it goes first in Volcano and YuniKorn.

    Kueue: fair_sharing.go, a2 borrows 1 of 8, c1 2 of 8. KAI: queue_order.go, c1 comes to more of
    its fair share than a2. Volcano: capacity.go, ``updateShare``. YuniKorn: ``getShares``.
    """
    found = orders(("c1", 2), ("a1", 3), ("b1", 2), ("a2", 2), ("c2", 1))
    assert found == {
        "kueue": ["a1", "b1", "a2", "c2"],
        "volcano": ["a1", "b1", "c1", "c2"],
        "kai": ["a1", "b1", "a2", "c2"],
        "yunikorn": ["a1", "b1", "c1", "c2"],
    }


def test_of_what_nobody_is_entitled_to_the_queue_of_higher_priority_gets_all_in_kai() -> None:
    """KAI: resource_division, priority bands. Kueue has no priority of queues.

    Volcano and YuniKorn put the priority before everything: b has 6, so that a1 does not fit.
    """
    found = orders(
        ("a1", 3),
        ("b1", 3),
        ("a2", 1),
        ("a3", 1),
        ("a4", 1),
        ("b2", 1),
        ("b3", 1),
        ("b4", 1),
        volcano=("metadata: {name: b}\nspec: {", "metadata: {name: b}\nspec: {priority: 10, "),
        kai=("priority: 100  # b", "priority: 200"),
        yunikorn=(
            "- name: b\n",
            "- name: b\n            properties: {priority.policy: fence, priority.offset: 10}\n",
        ),
    )
    assert found["kueue"] == ["a1", "b1", "a2", "b2"]
    assert found["kai"] == ["b1", "b2", "a1", "a2"]
    assert found["volcano"] == found["yunikorn"] == ["b1", "b2", "b3", "b4", "a2", "a3"]


def test_in_volcano_alone_weights_divide_all_there_is_where_nobody_deserves_anything() -> None:
    """Volcano: proportion.go. a deserves 6 of 8 and b 2; each gets what it deserves first.

    In Kueue and KAI without quotas both borrow, by weight: after each gang the lesser part goes.
    """
    teams = Teams("volcano", *WITHOUT_DESERVED)
    teams.wait(*((f"b{i}", 1) for i in range(8)), *((f"a{i}", 1) for i in range(8)))
    admitted = teams.admit()
    assert [sum(name[0] == team for name in admitted) for team in "ab"] == [6, 2]
    assert "b2" not in admitted


def test_in_volcano_what_a_queue_does_not_ask_for_is_divided_among_the_others() -> None:
    """Volcano: proportion.go. a asks for 1 of its 6, so that b deserves 7."""
    teams = Teams("volcano", *WITHOUT_DESERVED)
    teams.wait(("a0", 1), *((f"b{i}", 1) for i in range(8)))
    assert teams.admit() == ["a0", *(f"b{i}" for i in range(7))]


def test_a_gang_that_comes_later_changes_what_queues_deserve() -> None:
    """b has 4 when a comes: of 8, a deserves 6 now, and gets all that is left."""
    teams = Teams("volcano", *WITHOUT_DESERVED)
    teams.wait(*((f"b{i}", 1) for i in range(4)))
    assert len(teams.admit()) == 4
    teams.wait(*((f"b{i}", 1) for i in range(4, 8)), *((f"a{i}", 1) for i in range(8)))
    assert teams.admit() == ["a0", "a1", "a2", "a3"]


def _weighs(team: str, weight: int) -> tuple[str, str]:
    named = f"metadata: {{name: {team}}}\nspec: "
    return f"{named}{{deserved: {{nvidia.com/gpu: 4}}}}", f"{named}{{weight: {weight}}}"


WITHOUT_DESERVED = (_weighs("a", 3), _weighs("b", 1))
LENDS_ONE_OF_FOUR = {
    "kueue": ("nominalQuota: 4}]  # b", "nominalQuota: 4, lendingLimit: 1}]"),
    "volcano": (
        "metadata: {name: b}\nspec: {deserved",
        "metadata: {name: b}\nspec: {guarantee: {resource: {nvidia.com/gpu: 3}}, deserved",
    ),
    "kai": ("overQuotaWeight: 1}  # b", "overQuotaWeight: 1, lendingLimit: 1}"),
}


@pytest.mark.parametrize("dialect", ["kueue", "volcano", "kai"])
def test_an_idle_queue_keeps_what_it_does_not_lend(dialect: str) -> None:
    """Kueue: lendingLimit. Volcano: guarantee. KAI: lendingLimit (queue_resources.go)."""
    teams = Teams(dialect, LENDS_ONE_OF_FOUR[dialect])
    teams.wait(("c1", 6), ("c2", 5), ("b1", 3))
    assert teams.admit() == ["b1", "c2"]


def test_in_yunikorn_an_idle_queue_lends_everything() -> None:
    """There is no word for keeping: what is guaranteed is taken back (preemption.md)."""
    teams = Teams("yunikorn")
    teams.wait(("c1", 6), ("c2", 5))
    assert teams.admit() == ["c1"]


def test_a_queue_without_a_limit_gets_nothing_in_kai_alone() -> None:
    """KAI: docs/queues/README.md, Special Values. In the others what is not written is unlimited.

    Kueue has no limit but borrowingLimit, which c does not have.
    """
    found = orders(("c1", 1), kai=("quota: 0, limit: -1, ", "quota: 0, "))
    assert found == {"kueue": ["c1"], "volcano": ["c1"], "kai": [], "yunikorn": ["c1"]}


def test_fifo_keeps_the_second_waiting_in_kueue_and_volcano_and_only_sorts_in_yunikorn() -> None:
    """Kueue: StrictFIFO. Volcano: DequeueStrategyFIFO in v1beta1/types.go.

    YuniKorn: sorting_policies.md, "all applications that have pending requests can be scheduled".
    KAI has no such word.
    """
    found = orders(
        ("c1", 9),
        ("c2", 1),
        kueue=("metadata: {name: team-c}\nspec:", STRICT),
        volcano=("{weight: 1}", "{dequeueStrategy: fifo}"),
    )
    assert found == {"kueue": [], "volcano": [], "kai": ["c2"], "yunikorn": ["c2"]}
