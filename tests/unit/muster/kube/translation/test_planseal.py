"""Whose a plan is: seals of releases and of places."""

from dataclasses import replace

import msgspec

from muster.cluster.events import PlanNote
from muster.kube.translation.planannotation import (
    plan_for_pod,
    plan_note,
    plan_wire,
    text_of,
    unsealed,
)
from muster.kube.translation.planseal import (
    SKEW_S,
    Carrier,
    ExpectedMember,
    PlanKeys,
    is_sealed_for,
    place_of,
    sealed_place,
)

KEYS = PlanKeys(own=b"k" * 32)
NOTE = PlanNote("p1", "n1", ("n2",), {"n1": ("gpu-0",)}, 3, 7)
POD = Carrier("uid-1", "team-a", "native/team-a/train", 3, created=1_000.0)
MEMBER = ExpectedMember("team-a", "native/team-a/train", 3, until=1_090.0)


def released() -> str:
    return plan_for_pod(NOTE, POD.uid, KEYS.own)


def reserved() -> str:
    return text_of(sealed_place(plan_wire(NOTE), MEMBER, KEYS))


def test_a_sealed_plan_is_read_as_before() -> None:
    for text in (released(), reserved()):
        assert plan_note(text) == NOTE
        assert unsealed(text) == text_of(plan_wire(NOTE))


def test_without_a_key_there_is_no_seal() -> None:
    plain = text_of(plan_wire(NOTE))
    assert plan_for_pod(NOTE, "uid", b"") == plain
    assert text_of(sealed_place(plan_wire(NOTE), MEMBER, PlanKeys())) == plain
    assert not is_sealed_for(plain, POD, KEYS)


def test_the_plan_of_a_release_is_for_one_pod() -> None:
    assert is_sealed_for(released(), POD, KEYS)
    assert not is_sealed_for(released(), replace(POD, uid="uid-2"), KEYS)


def test_a_place_is_for_one_member_of_one_gang_of_one_namespace() -> None:
    assert is_sealed_for(reserved(), POD, KEYS)
    assert is_sealed_for(reserved(), replace(POD, uid="uid-2"), KEYS)  # one of them will count
    for other in (
        replace(POD, namespace="team-b"),
        replace(POD, gang="native/team-a/other"),
        replace(POD, number=4),
    ):
        assert not is_sealed_for(reserved(), other, KEYS)


def test_a_place_is_not_for_pods_that_are_created_long_after_it() -> None:
    last = MEMBER.until + SKEW_S
    assert is_sealed_for(reserved(), replace(POD, created=last), KEYS)
    assert not is_sealed_for(reserved(), replace(POD, created=last + 1), KEYS)


def test_copies_of_a_place_are_one_place_and_a_release_is_none() -> None:
    assert place_of(reserved(), POD) == place_of(reserved(), replace(POD, uid="uid-2"))
    assert place_of(released(), POD) is None


def test_the_key_before_a_rotation_still_counts_and_another_does_not() -> None:
    after = PlanKeys(own=b"n" * 32, others=(KEYS.own,))
    assert is_sealed_for(released(), POD, after)
    assert is_sealed_for(reserved(), POD, after)
    assert not is_sealed_for(released(), POD, PlanKeys(own=b"n" * 32))


def test_a_seal_of_a_release_is_none_of_a_place_and_the_other_way_round() -> None:
    digest = msgspec.json.decode(released())["seal"]
    moved = text_of(msgspec.structs.replace(plan_wire(NOTE), seal=f"1090.{digest}"))
    assert not is_sealed_for(moved, POD, KEYS)
