"""Which queues have whole jobs wait, as their objects come and go."""

import msgspec

from muster.workloads.queues.muster import OwnQueue
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
