"""Which fields of an object are not obeyed depends on whether gangs of its dialect give way."""

from muster.workloads.queues.reading import QueueReading, as_obeyed

READING = QueueReading(unobeyed=("a: why",), unobeyed_without_room=("b: why",))


def test_what_needs_gangs_that_give_way_is_not_obeyed_without_them() -> None:
    assert as_obeyed(READING, makes_room=True).unobeyed == ("a: why",)
    assert as_obeyed(READING, makes_room=False).unobeyed == ("a: why", "b: why")
