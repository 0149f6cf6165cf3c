"""The word of the first member counts; members that disagree make the gang contradictory."""

from extender.intake.statedspecs import SpecBook
from extender.planning.gangages import KEPT_S, MOST, GangAges
from muster.cluster.events import GangGone, GangUpserted
from muster.cluster.ids import GangKey, PodUid
from muster.cluster.specs.gangspec import GangSpec

KEY = GangKey("muster/ns/g")
UIDS = [PodUid(bytes([i] * 16)) for i in range(4)]


def spec(size: int, at: float = 0.0) -> GangSpec:
    return GangSpec(KEY, "ns", "g", "muster", min_count=size, size=size, submitted_at=at)


def test_the_first_member_makes_the_gang_and_equal_ones_change_nothing() -> None:
    book = SpecBook()
    assert book.seen(UIDS[0], spec(2)) == GangUpserted(spec(2))
    assert book.seen(UIDS[1], spec(2)) is None
    assert book.seen(UIDS[1], spec(2)) is None


def test_the_earliest_member_says_when_the_gang_was_submitted() -> None:
    book = SpecBook()
    book.seen(UIDS[0], spec(2, at=5))
    assert book.seen(UIDS[1], spec(2, at=3)) == GangUpserted(spec(2, at=3))
    assert book.seen(UIDS[2], spec(2, at=9)) is None


def test_a_gang_that_gave_way_is_as_old_as_before_once_and_for_a_while() -> None:
    now = 1_000.0
    ages = GangAges(lambda: now)
    book = SpecBook(ages)
    ages.note(KEY, 5)
    assert book.seen(UIDS[0], spec(2, at=900)) == GangUpserted(spec(2, at=5))
    assert book.seen(UIDS[1], spec(2, at=900)) is None
    for uid in UIDS[:2]:
        book.gone(uid, KEY)
    assert book.seen(UIDS[2], spec(2, at=950)) == GangUpserted(spec(2, at=950))
    book.gone(UIDS[2], KEY)
    ages.note(KEY, 5)
    now += KEPT_S
    assert book.seen(UIDS[3], spec(2, at=1_900)) == GangUpserted(spec(2, at=1_900))


def test_of_too_many_gangs_that_gave_way_the_first_one_is_forgotten() -> None:
    ages = GangAges(lambda: 0.0)
    for number in range(MOST + 1):
        ages.note(GangKey(f"muster/ns/{number}"), 5)
    assert ages.of(GangKey("muster/ns/0")) is None
    assert ages.of(GangKey("muster/ns/1")) == 5


def test_members_that_disagree_are_a_problem_that_names_both_values() -> None:
    book = SpecBook()
    book.seen(UIDS[0], spec(2))
    event = book.seen(UIDS[1], spec(3))
    assert isinstance(event, GangUpserted)
    assert any("2 and 3" in problem and "size" in problem for problem in event.spec.problems)


def test_the_problem_ends_with_the_member_that_disagreed() -> None:
    book = SpecBook()
    book.seen(UIDS[0], spec(2))
    book.seen(UIDS[1], spec(3))
    assert book.gone(UIDS[1], KEY) == GangUpserted(spec(2))


def test_members_recreated_with_another_size_are_believed_once_the_old_ones_are_gone() -> None:
    book = SpecBook()
    for uid in UIDS[:2]:
        book.seen(uid, spec(2))
    for uid in UIDS[2:]:
        book.seen(uid, spec(3))
    assert book.gone(UIDS[0], KEY) is None
    assert book.gone(UIDS[1], KEY) == GangUpserted(spec(3))


def test_one_member_that_changes_its_mind_is_believed() -> None:
    book = SpecBook()
    book.seen(UIDS[0], spec(2))
    assert book.seen(UIDS[0], spec(3)) == GangUpserted(spec(3))


def test_the_gang_ends_with_its_last_member() -> None:
    book = SpecBook()
    book.seen(UIDS[0], spec(2))
    book.seen(UIDS[1], spec(2))
    assert book.gone(UIDS[0], KEY) is None
    assert book.gone(UIDS[1], KEY) == GangGone(KEY)
    assert book.gone(UIDS[1], KEY) is None
