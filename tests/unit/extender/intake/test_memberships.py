"""A pod's place is read once, for as long as the pod says the same of it."""

import pytest
from support.pods.wirepods import pod

from extender.intake import memberships
from muster.cluster.ids import GangKey, PodUid
from muster.kube import names, wire
from muster.workloads.dialect import Member

ONE, OTHER = PodUid(b"1" * 16), PodUid(b"2" * 16)
THERE = Member(GangKey("muster/ns/g"), rank=3)


def test_what_says_the_same_is_in_the_same_place() -> None:
    known = memberships.Memberships()
    known.put(ONE, 7, THERE)
    assert known.get(ONE, 7) is THERE
    assert known.get(ONE, 8) is None
    assert known.get(OTHER, 7) is None
    known.drop(ONE)
    known.drop(ONE)
    assert known.get(ONE, 7) is None


@pytest.mark.parametrize("most", [2, 4, 10])
def test_who_was_read_longest_ago_is_forgotten_first(most: int) -> None:
    known = memberships.Memberships(most)
    uids = [PodUid(bytes([number]) * 16) for number in range(50)]
    for count, uid in enumerate(uids, 1):
        known.put(uid, 7, THERE)
        kept = [known.get(each, 7) is THERE for each in uids[:count]]
        assert kept == sorted(kept)  # none is older than one that was forgotten
        assert min(count, most // 2) <= sum(kept) <= most


def test_who_was_read_again_is_kept_with_what_it_said_last() -> None:
    known = memberships.Memberships(4)
    known.put(ONE, 7, THERE)
    for number in (3, 4, 5):
        known.put(PodUid(bytes([number]) * 16), 7, THERE)
    known.put(ONE, 8, THERE)
    assert (known.get(ONE, 7), known.get(ONE, 8)) == (None, THERE)
    known.drop(ONE)
    assert known.get(ONE, 7) is known.get(ONE, 8) is None


def test_neither_a_plan_nor_the_labels_of_a_binding_are_something_that_a_pod_says() -> None:
    plain = pod(labels={"app": "a"})
    zone = {"topology.kubernetes.io/zone": "z"}
    bound = pod(labels={"app": "a", **zone}, annotations={names.PLAN: "x"})
    assert memberships.digest_of(plain) == memberships.digest_of(bound)
    assert memberships.digest_of(plain) != memberships.digest_of(pod(labels={"app": "b"}))


def test_a_deadline_is_something_that_a_pod_says() -> None:
    plain = pod(labels={"app": "a"})
    spec = wire.PodSpec(active_deadline_seconds=60)
    ends = wire.Pod(metadata=plain.metadata, spec=spec)
    assert memberships.digest_of(plain) != memberships.digest_of(ends)
