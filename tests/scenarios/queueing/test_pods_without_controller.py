"""Gangs whose pods no controller makes again: they give way by right, and end for good."""

from support.clusters.roomscene import NOW, RoomScene, names_of

from muster.decisions import roomtext
from muster.decisions.roomplan import RoomRight
from muster.decisions.tenancy import GangTerms

PAIR = "a/r1 n1 n2"


def test_a_queue_takes_back_what_it_is_entitled_to_from_pods_without_a_controller() -> None:
    """Else whoever creates bare pods would keep what is others' for ever."""
    scene = RoomScene(PAIR, a=8, b=8)
    scene.runs("x", ["n1", "n2"], queue="b", minimum=1, owned=False)
    made = scene.made(scene.wants("w", 1, queue="a"))
    assert [(one.right, one.is_final) for one in made.victims] == [(RoomRight.RECLAIM, True)]


def test_a_gang_whose_controller_makes_its_pods_again_goes_first() -> None:
    """Both saved their work a minute ago; nobody goes on from what the bare pod saved."""
    scene = RoomScene(PAIR, a=16)
    bare = scene.runs("bare", ["n1"], queue="a", since=NOW - 600, owned=False)
    job = scene.runs("job", ["n2"], queue="a", since=NOW - 6_000)
    terms = {bare: GangTerms(NOW - 60), job: GangTerms(NOW - 70)}
    wants = scene.wants("w", 1, queue="a", priority=9)
    assert names_of(scene.made(wants, terms=terms)) == ["job"]


def test_the_answer_says_of_a_gang_that_it_ends_for_good() -> None:
    """Before anybody ends: `muster whatif --preempt`, `explain`."""
    scene = RoomScene(PAIR, a=16)
    scene.runs("bare", ["n1"], queue="a", owned=False)
    scene.runs("job", ["n2"], queue="a")
    made = scene.made(scene.wants("w", 2, queue="a", priority=9))
    assert [one.is_final for one in made.victims] == [True, False]
    lines = roomtext.lines_of(made)
    assert lines[1].endswith("; no controller makes its pods again")
    assert not lines[2].endswith("again")
    assert "bare: a higher priority in its queue, for good" in roomtext.makes_room(made)
