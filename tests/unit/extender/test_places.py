"""A pod's place is read once, for as long as the pod says the same of it."""

import pytest
from support.wirepods import pod

from cluster.ids import GangKey, PodUid
from extender import places
from kube import names
from workloads.dialect import Member

ONE, OTHER = PodUid(b"1" * 16), PodUid(b"2" * 16)
THERE = Member(GangKey("muster/ns/g"), rank=3)


def test_what_says_the_same_is_in_the_same_place() -> None:
    known = places.Places()
    known.put(ONE, 7, THERE)
    assert known.get(ONE, 7) is THERE
    assert known.get(ONE, 8) is None
    assert known.get(OTHER, 7) is None
    known.drop(ONE)
    known.drop(ONE)
    assert known.get(ONE, 7) is None


def test_who_was_read_longest_ago_is_forgotten_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(places, "MOST", 2)
    known = places.Places()
    for uid in (ONE, OTHER, ONE, PodUid(b"3" * 16)):
        known.put(uid, 7, THERE)
    assert known.get(OTHER, 7) is None
    assert known.get(ONE, 7) is THERE


def test_neither_a_plan_nor_the_labels_of_a_binding_are_something_that_a_pod_says() -> None:
    plain = pod(labels={"app": "a"})
    zone = {"topology.kubernetes.io/zone": "z"}
    bound = pod(labels={"app": "a", **zone}, annotations={names.PLAN: "x"})
    assert places.said(plain) == places.said(bound)
    assert places.said(plain) != places.said(pod(labels={"app": "b"}))
