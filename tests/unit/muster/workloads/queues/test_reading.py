"""Which fields of an object are not obeyed depends on the configuration."""

from muster.cluster.quota.queuespec import QueueName, QueueSpec, ShareFunction
from muster.workloads.queues.reading import QueueReading, as_obeyed, without_fair_sharing

READING = QueueReading(unobeyed=("a: why",), unobeyed_without_room=("b: why",))


def test_what_needs_gangs_that_give_way_is_not_obeyed_without_them() -> None:
    assert as_obeyed(READING, makes_room=True).unobeyed == ("a: why",)
    assert as_obeyed(READING, makes_room=False).unobeyed == ("a: why", "b: why")


def test_what_needs_past_use_is_not_obeyed_without_a_half_life() -> None:
    reading = QueueReading(unobeyed=("a: why",), unobeyed_without_past=("b: why",))
    assert as_obeyed(reading, makes_room=True, counts_past_use=True) == reading
    assert as_obeyed(reading, makes_room=True).unobeyed == ("a: why", "b: why")


def test_what_workloads_wait_for_is_not_obeyed_for_gangs() -> None:
    reading = QueueReading(unobeyed_without_workloads=("a: why",))
    assert as_obeyed(reading, makes_room=True, has_workloads=True) == reading
    assert as_obeyed(reading, makes_room=True).unobeyed == ("a: why",)


def test_without_fair_sharing_queues_that_are_named_only_go_by_priority_too() -> None:
    a, all_ = QueueSpec(QueueName("kueue/a")), QueueSpec(QueueName("kueue/cohort/all"))
    found = without_fair_sharing(QueueReading(specs=(a,), implied=(all_,)))
    shares = [spec.shares for spec in (*found.specs, *found.implied)]
    assert shares == [ShareFunction.PRIORITY, ShareFunction.PRIORITY]
