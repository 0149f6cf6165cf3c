"""What YuniKorn's queues say of preemption, and what they inherit."""

import pytest

from muster.cluster.quota.preemptionpolicy import PreemptionPolicy, ReclaimFloor
from muster.workloads.queues.findings import QueueFindings
from muster.workloads.queues.preemption.yunikornpolicy import (
    DEFAULT_PREEMPTION,
    yunikorn_preemption,
)
from muster.workloads.queues.yunikorn import queues_yaml


def of(
    offset: int = 0, above: PreemptionPolicy = DEFAULT_PREEMPTION, **properties: str
) -> PreemptionPolicy:
    """Return what is read of properties; ``_`` stands for a dot."""
    written = {name.replace("_", "."): word for name, word in properties.items()}
    return yunikorn_preemption("root.a", written, offset, above, QueueFindings())


def test_a_queue_that_says_nothing_takes_lower_and_equal_priorities_of_others_after_30_s() -> None:
    found = of()
    assert (found.within_queue, found.reclaim, found.delay) == ("Never", "LowerOrEqualPriority", 30)
    assert (found.is_reclaimable, found.is_fence, found.hides_priority) == (True, False, False)
    assert (found.floor, found.reaches_outside) == (ReclaimFloor.ENTITLED, False)


def test_the_words_are_read_whatever_their_letters() -> None:
    found = of(7, preemption_policy="Fence", priority_policy="FENCE", preemption_delay="1m")
    assert (found.is_fence, found.hides_priority, found.priority_offset) == (True, True, 7)
    assert found.delay == 60.0


def test_only_disabled_and_the_delay_are_inherited() -> None:
    above = of(7, preemption_policy="disabled", priority_policy="fence", preemption_delay="5m")
    found = of(above=above)
    assert (found.is_reclaimable, found.delay) == (False, 300.0)
    assert (found.priority_offset, found.hides_priority) == (0, False)
    assert of(above=of(preemption_policy="fence")).is_fence is False


def test_what_a_queue_says_itself_counts_more_than_what_it_inherits() -> None:
    above = of(preemption_policy="disabled", preemption_delay="5m")
    found = of(above=above, preemption_policy="default", preemption_delay="1s")
    assert (found.is_reclaimable, found.delay) == (True, 1.0)


@pytest.mark.parametrize("delay", ["0s", "-1s", "soon", ""])
def test_a_delay_that_is_no_time_above_0_is_named(delay: str) -> None:
    findings = QueueFindings()
    written = {"preemption.delay": delay}
    found = yunikorn_preemption("root.a", written, 0, DEFAULT_PREEMPTION, findings)
    (problem,) = findings.problems
    assert problem.startswith("root.a.properties[preemption.delay]: ")
    assert found.delay == 30.0


def test_a_text_gives_each_queue_the_properties_above_it() -> None:
    reading = queues_yaml("""
partitions:
  - name: default
    queues:
      - name: root
        properties: {preemption.delay: 10s}
        queues:
          - name: research
            properties: {preemption.policy: disabled}
            queues:
              - name: vision
          - name: service
            properties: {preemption.delay: 1s}
""")
    found = {spec.name.rpartition(".")[2]: spec.preemption for spec in reading.specs}
    assert (found["vision"].delay, found["vision"].is_reclaimable) == (10.0, False)
    assert (found["service"].delay, found["service"].is_reclaimable) == (1.0, True)
    assert (reading.problems, reading.unobeyed) == ((), ())
