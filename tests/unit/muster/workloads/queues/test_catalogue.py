"""All queues of a cluster, from what its objects say."""

from dataclasses import replace

from support.clusters.queuenames import resolved

from muster.cluster.quota.cells import Cell, Quota
from muster.cluster.quota.queuespec import QueueName, QueueSpec
from muster.cluster.specs.podconstraints import Operator, Requirement
from muster.workloads.queues.catalogue import QueueCatalogue, QueueChanges
from muster.workloads.queues.reading import (
    FlavorGroup,
    FlavorReading,
    QueueAlias,
    QueueReading,
)

A, B, ALL = QueueName("kueue/a"), QueueName("kueue/b"), QueueName("kueue/cohort/all")
TEAM = (Requirement("team", Operator.IN, ("a",)),)


def described(name: QueueName, parent: QueueName | None = None, gpus: int = 0) -> QueueReading:
    spec = QueueSpec(name, parent, {Cell("", "gpu"): Quota(gpus)})
    implied = () if parent is None else (QueueSpec(parent),)
    return QueueReading(specs=(spec,), implied=implied)


def named(*aliases: QueueAlias, since: float = 0.0) -> QueueReading:
    return QueueReading(aliases=aliases, since=since)


def catalogue(**readings: QueueReading) -> QueueCatalogue:
    found = QueueCatalogue()
    for source, reading in readings.items():
        found.put(source, reading)
    return found


def test_a_queue_comes_changes_and_goes_with_its_object() -> None:
    found = QueueCatalogue()
    first, second = described(A), described(A, gpus=4)
    assert found.put("a", first) == QueueChanges(first.specs, renamed=(A,))
    assert found.put("a", first) == QueueChanges()
    assert found.put("a", second) == QueueChanges(second.specs)
    assert found.remove("a") == QueueChanges(removed=(A,), renamed=(A,))
    assert (found.remove("a"), found.specs()) == (QueueChanges(), {})


def test_an_implied_queue_is_there_while_somebody_names_it_and_nobody_describes_it() -> None:
    found = catalogue(a=described(A, ALL))
    cohort = described(ALL, gpus=8)
    assert found.put("b", described(B, ALL)).put == described(B, ALL).specs
    assert found.put("all", cohort).put == cohort.specs
    assert found.remove("all").put == (QueueSpec(ALL),)
    assert found.remove("a").removed == (A,)
    assert found.remove("b").removed == (ALL, B)


def test_an_implied_queue_comes_before_those_that_name_it() -> None:
    assert [spec.name for spec in QueueCatalogue().put("a", described(A, ALL)).put] == [ALL, A]


def test_an_object_may_describe_another_queue_than_before() -> None:
    found = catalogue(source=described(A))
    changes = found.put("source", described(B))
    assert ([spec.name for spec in changes.put], changes.removed) == ([B], (A,))


def test_of_two_objects_that_describe_a_queue_the_older_is_right() -> None:
    young, old = replace(described(A, gpus=1), since=9.0), described(A, gpus=2)
    found = catalogue(young=young)
    assert found.put("old", old).put == old.specs
    assert found.problems("young") == (
        "queue kueue/a is described by old, which is older: delete one",
    )
    assert found.problems("old") == ()
    assert found.put("young", young) == QueueChanges()
    assert found.remove("old").put == young.specs
    assert found.problems("young") == found.problems("nobody") == ()


def test_problems_of_an_object_are_its_own_and_those_with_others() -> None:
    wrong = replace(described(A), problems=("weight is wrong",), since=2.0)
    found = catalogue(old=described(A), wrong=wrong)
    assert len(found.problems("wrong")) == 2


def test_a_gang_finds_its_queue_by_a_name_for_its_namespace_before_one_for_all() -> None:
    found = catalogue(a=named(QueueAlias("x", A)), b=named(QueueAlias("x", B, "team")))
    assert resolved(found, "team", "kueue", "x") == B
    assert resolved(found, "other", "kueue", "x") == A
    assert resolved(found, "team", "kueue", "y") is None


def test_a_gang_finds_queues_of_its_own_dialect_first_then_musters_then_the_others() -> None:
    queues = [QueueName(f"{dialect}/x") for dialect in ("volcano", "muster", "kueue")]
    found = catalogue(**{queue: named(QueueAlias("x", queue)) for queue in queues})
    assert resolved(found, "team", "volcano", "x") == "volcano/x"
    assert resolved(found, "team", "volcano-job", "x") == "volcano/x"
    assert resolved(found, "team", "jobset", "x") == "muster/x"
    found.remove("muster/x")
    assert resolved(found, "team", "jobset", "x") == "kueue/x"


def test_gangs_of_scheduler_plugins_find_the_quota_of_their_namespace() -> None:
    quota = QueueName("elasticquota/team/quota")
    found = catalogue(quota=named(QueueAlias("", quota, "team")))
    assert resolved(found, "team", "coscheduling", "") == quota
    assert resolved(found, "other", "coscheduling", "") is None


def test_case_counts_but_for_names_that_ignore_it() -> None:
    queue = QueueName("yunikorn/root.a")
    found = catalogue(
        yunikorn=named(QueueAlias("root.a", queue, ignores_case=True)),
        kueue=named(QueueAlias("Root.A", A)),
    )
    assert resolved(found, "team", "yunikorn", "ROOT.a") == queue
    assert resolved(found, "team", "kueue", "Root.A") == A
    assert resolved(found, "team", "kueue", "root.A") == queue


def test_of_two_queues_of_one_name_the_older_source_is_right() -> None:
    found = catalogue(
        young=named(QueueAlias("x", A), since=2.0), old=named(QueueAlias("x", B), since=1.0)
    )
    assert resolved(found, "team", "kueue", "x") == B
    found.remove("old")
    assert resolved(found, "team", "kueue", "x") == A


def test_who_may_use_a_queue_and_of_what_comes_from_whom_describes_it() -> None:
    group = (FlavorGroup(("gpu",), ("h100",)),)
    reading = replace(described(A), namespaces={A: TEAM}, groups={A: group})
    found = catalogue(a=reading, b=replace(described(A), since=1.0))
    assert (found.namespaces(A), found.groups(A)) == (TEAM, group)
    found.remove("a")
    assert (found.namespaces(A), found.groups(A)) == ((), None)
    assert (found.namespaces(B), found.groups(B)) == ((), None)


def test_a_queue_is_closed_while_a_flavor_that_it_names_does_not_exist() -> None:
    reading = replace(described(A), groups={A: (FlavorGroup(("gpu",), ("h100", "")),)})
    (spec,) = reading.specs
    found = catalogue(a=reading)
    assert found.specs() == {A: replace(spec, is_open=False)}
    assert (found.missing_flavors(A), found.problems("a")) == (
        ("h100",),
        ("queue kueue/a: flavor h100 does not exist: create it, or name another",),
    )
    assert found.put("h100", QueueReading(flavors=(FlavorReading("h100"),))).put == (spec,)
    assert found.problems("a") == ()
    assert found.remove("h100").put == (replace(spec, is_open=False),)


def test_flavors_and_priorities_are_found_by_name() -> None:
    reading = QueueReading(flavors=(FlavorReading("h100"),), priorities={"urgent": 7})
    found = catalogue(a=reading)
    assert (found.flavor("h100"), found.priority("urgent")) == (FlavorReading("h100"), 7)
    assert found.remove("a") == QueueChanges()
    assert (found.flavor("h100"), found.priority("urgent")) == (None, None)


def test_more_than_numbers_changed_when_names_or_users_did() -> None:
    found = catalogue(a=described(A))
    assert found.put("a", replace(described(A), namespaces={A: TEAM})).renamed
    assert not found.put("a", replace(described(A, gpus=1), namespaces={A: TEAM})).renamed
    assert found.put("a", described(A, gpus=1)).renamed
