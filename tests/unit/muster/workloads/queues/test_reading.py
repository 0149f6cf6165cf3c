"""Which fields of an object are not obeyed depends on the configuration."""

from muster.workloads.queues.reading import QueueReading, as_obeyed

READING = QueueReading(unobeyed=("a: why",), unobeyed_without_room=("b: why",))


def test_what_needs_gangs_that_give_way_is_not_obeyed_without_them() -> None:
    assert as_obeyed(READING, makes_room=True).unobeyed == ("a: why",)
    assert as_obeyed(READING, makes_room=False).unobeyed == ("a: why", "b: why")


def test_what_needs_past_use_is_not_obeyed_without_a_half_life() -> None:
    reading = QueueReading(unobeyed=("a: why",), unobeyed_without_past=("b: why",))
    assert as_obeyed(reading, makes_room=True, counts_past_use=True) == reading
    assert as_obeyed(reading, makes_room=True).unobeyed == ("a: why", "b: why")
