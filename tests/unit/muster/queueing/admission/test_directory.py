"""What is said of a queue by its objects alone.

::

    cluster ─┬─ vision   entitled 16, at most 24, for namespaces with team=vision
             └─ speech   closed
    kueue/a             its own controller admits
"""

from dataclasses import replace

import pytest

from muster.cluster.events import QueueGone, QueueUpserted
from muster.cluster.quota.aliases import QueueUser, Spelling
from muster.cluster.quota.cells import Cell, Quota
from muster.cluster.quota.flavors import Flavor, ResourceGroup
from muster.cluster.quota.queuespec import QueueName, QueueSpec
from muster.cluster.specs.podconstraints import Operator, Requirement
from muster.queueing.admission.directory import QueueDirectory

GPU = "nvidia.com/gpu"
ROOT = QueueName("muster/cluster")
TEAM = {"team": "vision"}


def queue(name: str, most: int = 24, **more: object) -> QueueUpserted:
    full = QueueName(f"muster/{name}")
    spec = QueueSpec(full, ROOT, {Cell("", GPU): Quota(16, limit=most)})
    spec = replace(spec, **{k: v for k, v in more.items() if k == "is_open"})  # type: ignore[arg-type]
    rest = {k: v for k, v in more.items() if k != "is_open"}
    return QueueUpserted(spec, (Spelling("", name),), **rest)  # type: ignore[arg-type]


def directory(*events: QueueUpserted | QueueGone) -> QueueDirectory:
    made = QueueDirectory()
    made.take(QueueUpserted(QueueSpec(ROOT, is_whole=True, is_cluster=True)))
    for event in events:
        made.take(event)
    return made


def said(
    made: QueueDirectory, name: str, gpus: int = 8, labels: dict[str, str] | None = None
) -> str:
    return made.problem(QueueUser("muster", "ns", name), labels, {GPU: gpus})


def test_what_fits_the_limit_is_not_spoken_of_whatever_is_used() -> None:
    assert said(directory(queue("vision")), "vision", 24) == ""


def test_more_than_the_limit_never_fits() -> None:
    assert said(directory(queue("vision")), "vision", 25) == (
        "it asks for 25 nvidia.com/gpu, and queue muster/vision can never have more than "
        "24 nvidia.com/gpu: ask for less, or raise the queue's limit"
    )


def test_a_name_that_no_queue_has_is_told_with_those_that_there_are() -> None:
    assert said(directory(queue("vision"), queue("speech")), "no") == (
        'no queue is named "no" in namespace ns: create it, or name one of: speech, vision'
    )


def test_a_closed_queue_is_told_until_it_is_open() -> None:
    made = directory(queue("vision", is_open=False))
    assert said(made, "vision").startswith("queue muster/vision is closed")
    made.take(queue("vision"))
    assert said(made, "vision") == ""


def test_a_stopped_name_is_told() -> None:
    closed = replace(queue("vision"), spellings=(Spelling("", "vision", is_open=False),))
    assert said(directory(closed), "vision").startswith('"vision" is stopped')


@pytest.mark.parametrize(
    ("labels", "says"), [(TEAM, ""), ({}, "namespace ns may not use queue"), (None, "")]
)
def test_a_namespace_may_use_what_selects_it_and_is_not_judged_by_labels_that_are_not_known(
    labels: dict[str, str] | None, says: str
) -> None:
    selecting = queue("vision", namespaces=(Requirement("team", Operator.IN, ("vision",)),))
    assert said(directory(selecting), "vision", labels=labels).startswith(says)
    assert bool(said(directory(selecting), "vision", labels=labels)) == bool(says)


def test_nothing_is_said_of_queues_that_others_admit() -> None:
    assert said(directory(queue("vision", is_open=False, is_elsewhere=True)), "vision", 99) == ""


def test_nothing_is_said_where_there_are_no_queues_or_none_is_named() -> None:
    assert said(QueueDirectory(), "vision", 99) == ""
    assert said(directory(queue("vision")), "", 99) == ""


def test_a_queue_that_is_gone_is_missing_and_one_that_comes_is_there() -> None:
    made = directory(queue("vision"), queue("speech"), QueueGone(QueueName("muster/speech")))
    assert said(made, "speech").startswith("no queue is named")
    made.take(queue("speech"))
    assert said(made, "speech") == ""


def test_one_flavor_that_may_hold_it_is_enough() -> None:
    name = QueueName("kueue/a")
    quotas = {Cell("small", GPU): Quota(8, limit=8), Cell("large", GPU): Quota(32, limit=32)}
    groups = (ResourceGroup((GPU,), (Flavor("small", ()), Flavor("large", ()))),)
    made = directory(QueueUpserted(QueueSpec(name, None, quotas), (Spelling("", "a"),), (), groups))
    assert said(made, "a", 16) == ""
    assert "more than 8" in said(made, "a", 33)
