"""What is read of Muster's own queues beside their numbers."""

import msgspec
import pytest

from muster.workloads.queues.muster import OwnQueue, queue


@pytest.mark.parametrize("admission", ["Gate", "Suspend"])
def test_where_jobs_wait_changes_nothing_of_a_queue(admission: str) -> None:
    plain, other = (
        queue(msgspec.convert({"metadata": {"name": "a"}, "spec": spec}, OwnQueue))
        for spec in ({}, {"admission": admission})
    )
    assert plain == other


def test_a_word_that_says_nothing_closes_the_queue_and_is_named() -> None:
    found = queue(
        msgspec.convert({"metadata": {"name": "a"}, "spec": {"admission": "suspend"}}, OwnQueue)
    )
    assert [spec.is_open for spec in found.specs] == [False]
    assert found.problems == ('spec.admission: "suspend" is not allowed: Gate or Suspend',)
