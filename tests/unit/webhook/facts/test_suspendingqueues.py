"""Which queues have whole jobs wait, as their objects come and go."""

import msgspec

from muster.kube.changes import ObjectGone, Synced, Upserted
from muster.workloads.queues.muster import OwnQueue
from webhook.facts.queues import QueueFacts
from webhook.facts.suspendingqueues import SuspendingQueues


def _queue(name: str, **spec: object) -> OwnQueue:
    return msgspec.convert({"metadata": {"name": name}, "spec": spec}, OwnQueue)


def test_a_queue_has_jobs_wait_for_as_long_as_it_says_so() -> None:
    queues = SuspendingQueues(None)  # type: ignore[arg-type]  # it is not run
    assert queues.problem() == "not listed yet: queues.muster.dev"
    for spec, suspends in (({}, False), ({"admission": "Suspend"}, True), ({}, False)):
        queues.put(_queue("vision", **spec))
        assert queues.suspends("vision") is suspends
        assert queues.suspends("Vision") is suspends
        assert not queues.suspends("")
    queues.put(_queue("vision", admission="Suspend"))
    queues.drop(_queue("vision").metadata)
    assert not queues.suspends("vision")


def test_who_watches_all_queues_shows_them_and_no_second_watch_is_needed() -> None:
    everything = QueueFacts(None)  # type: ignore[arg-type]  # it is not run
    suspending = SuspendingQueues(None)  # type: ignore[arg-type]
    assert everything.show(suspending.source)
    shown = next(each for each in everything._sources if each.watches(suspending.source))
    waiting = _queue("vision", admission="Suspend")

    shown.take([Upserted(waiting)])
    assert suspending.suspends("vision")
    assert suspending.problem() is not None
    shown.take([Synced(frozenset())])
    assert suspending.problem() is None
    assert not suspending.source.watches(everything._sources[-1])

    shown.take([ObjectGone(waiting.metadata)])
    assert not suspending.suspends("vision")
    assert everything._changes > 0, "it is shown them, too"
