"""Whose owner says that it never gives way, in the words of each scheduler."""

import pytest
from support.pods.jsonpods import pod

from muster.kube.translation.firmmarks import is_firm
from muster.kube.translation.translate import Translator, pod_event


@pytest.mark.parametrize(
    ("where", "key", "value"),
    [
        ("annotations", "volcano.sh/preemptable", "false"),
        ("labels", "volcano.sh/preemptable", "false"),
        ("annotations", "volcano.sh/preemptable", "no"),
        ("labels", "kai.scheduler/preemptibility", "non-preemptible"),
        ("labels", "quota.scheduling.koordinator.sh/preemptible", "false"),
        ("annotations", "yunikorn.apache.org/allow-preemption", "false"),
    ],
)
def test_each_mark_keeps_a_pod(where: str, key: str, value: str) -> None:
    assert pod_event(pod(metadata={where: {key: value}})).firm


@pytest.mark.parametrize(
    ("where", "key", "value"),
    [
        ("annotations", "volcano.sh/preemptable", "true"),
        ("labels", "volcano.sh/preemptable", "1"),
        ("labels", "kai.scheduler/preemptibility", "preemptible"),
        ("labels", "kai.scheduler/preemptibility", "semi-preemptible"),
        ("labels", "quota.scheduling.koordinator.sh/preemptible", "true"),
        ("annotations", "yunikorn.apache.org/allow-preemption", "true"),
        ("labels", "yunikorn.apache.org/allow-preemption", "false"),
    ],
)
def test_a_pod_without_a_mark_gives_way(where: str, key: str, value: str) -> None:
    assert not pod_event(pod(metadata={where: {key: value}})).firm
    assert not pod_event(pod()).firm


def test_of_volcanos_two_places_the_annotation_counts() -> None:
    assert not is_firm({"volcano.sh/preemptable": "false"}, {"volcano.sh/preemptable": "true"})


def test_a_sibling_in_a_list_has_a_mark_of_its_own() -> None:
    translator, marked = Translator(), pod(metadata={"labels": {"volcano.sh/preemptable": "false"}})
    like = translator.pod_event(pod())
    event = translator.event_as(like, marked.metadata, "n1", gang=None, role="", rank=-1)
    assert event.firm
