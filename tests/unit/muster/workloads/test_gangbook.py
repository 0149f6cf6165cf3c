"""From descriptions to the gangs of the model, where it is not one for one.

::

    PodGroup a ──┐
                 ├──► a+b, roles n/a and n/b         Workload group t ──┬──► t:0
    PodGroup b ──┘                                                      └──► t:1
"""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from muster.cluster.events import Event, GangGone, GangUpserted, MembersMoved
from muster.cluster.ids import GangKey, PodUid
from muster.cluster.specs.gangspec import GangSpec, RoleSpec
from muster.workloads.dialect import Member
from muster.workloads.gangbook import GangBook, unit_key

A, B, C = GangKey("d/n/a"), GangKey("d/n/b"), GangKey("d/n/c")
WHOLE = GangKey("d/n/a+b")
TEMPLATE = GangKey("d/n/t")


def part(key: GangKey, minimum: int = 2, *, unit: tuple[GangKey, ...] = (A, B)) -> GangSpec:
    name = key.rpartition("/")[2]
    return GangSpec(key, "n", name, "d", min_count=minimum, unit=unit)


def specs(events: list[Event]) -> dict[GangKey, GangSpec]:
    return {event.spec.key: event.spec for event in events if isinstance(event, GangUpserted)}


def test_a_gang_on_its_own_is_told_as_it_is() -> None:
    book, alone = GangBook(), part(A, unit=())
    assert book.told(alone) == [GangUpserted(alone)]
    assert book.resolve(Member(A, "r", 3)) == Member(A, "r", 3)
    assert list(book.parts(A)) == [A]
    assert book.gone(A) == [GangGone(A)]


def test_a_unit_is_known_once_all_its_parts_are() -> None:
    book = GangBook()
    assert specs(book.told(part(A, 3))) == {}
    united = specs(book.told(part(B, 2)))[WHOLE]
    assert (united.min_count, united.unit) == (5, ())
    assert united.roles == (RoleSpec("n/a", 3), RoleSpec("n/b", 2))
    assert book.resolve(Member(B, "", 1)) == Member(WHOLE, "n/b", 1)
    assert list(book.parts(WHOLE)) == [A, B]


def test_members_that_came_first_are_moved_and_their_gang_ends() -> None:
    book = GangBook()
    assert book.told(part(A))[:2] == [MembersMoved(A, WHOLE, role="n/a"), GangGone(A)]
    assert MembersMoved(A, WHOLE, role="n/a") not in book.told(part(A))


def test_a_part_that_leaves_its_unit_takes_its_members_along() -> None:
    book = GangBook()
    book.told(part(A))
    book.told(part(B))
    events = book.told(part(A, unit=()))
    assert MembersMoved(WHOLE, A, only="n/a") in events
    assert GangGone(WHOLE) in events
    assert specs(events) == {A: part(A, unit=())}


def test_a_unit_waits_again_when_the_description_of_a_part_goes() -> None:
    """As after a restart: nothing tells any more what the part belongs to."""
    book = GangBook()
    book.told(part(A))
    book.told(part(B))
    assert book.gone(A) == [MembersMoved(WHOLE, A, only="n/a"), GangGone(WHOLE), GangGone(A)]
    assert book.resolve(Member(A)).key == A
    assert WHOLE in specs(book.told(part(A)))


def test_what_the_parts_say_against_each_other_is_a_problem() -> None:
    book = GangBook()
    book.told(replace(part(A), required_level="rack", problems=("x is wrong",)))
    united = specs(book.told(replace(part(B), required_level="block", slice_size=2)))[WHOLE]
    assert united.problems == (
        "d/n/a: x is wrong",
        "d/n/b: slices of a part of a group of gangs cannot be kept",
        "d/n/a: the parts of the group require different levels: block, rack",
    )


def test_parts_of_other_namespaces_keep_their_names_apart() -> None:
    other = GangKey("d/m/a")
    assert unit_key((A, other)) == "d/m/a+n.a"
    book = GangBook()
    book.told(part(A, unit=(other, A)))
    united = specs(book.told(replace(part(other, unit=(other, A)), namespace="m")))
    (spec,) = united.values()
    assert [role.name for role in spec.roles] == ["m/a", "n/a"]


# -- copies --------------------------------------------------------------------------------------


def uid(number: int) -> PodUid:
    return PodUid(number.to_bytes(16, "big"))


def test_replicas_copy_their_template_whichever_comes_first() -> None:
    book, first, second = GangBook(), GangKey("d/n/t:0"), GangKey("d/n/t:1")
    template = part(TEMPLATE, 4, unit=())
    assert book.came(uid(1), Member(first, template=TEMPLATE), None) == []
    told = specs(book.told(template))
    assert (told[first].min_count, told[first].name) == (4, "t:0")
    later = specs(book.came(uid(2), Member(second, template=TEMPLATE), template))
    assert set(later) == {second}
    assert set(specs(book.told(replace(template, min_count=2)))) == {TEMPLATE, first, second}


def test_a_copy_ends_with_its_last_member() -> None:
    book, copy = GangBook(), GangKey("d/n/t:0")
    for number in (1, 2):
        book.came(uid(number), Member(copy, template=TEMPLATE), None)
    assert book.left(uid(1), copy) == []
    assert book.left(uid(2), copy) == [GangGone(copy)]
    assert book.left(uid(2), copy) == []
    assert set(specs(book.told(part(TEMPLATE, unit=())))) == {TEMPLATE}


# -- whatever the order --------------------------------------------------------------------------

UNITS = st.sampled_from(((), (A, B), (A, C), (A, B, C)))
STEPS = st.lists(st.tuples(st.sampled_from((A, B, C)), st.none() | UNITS), max_size=12)


@given(STEPS)
def test_what_the_model_is_told_in_the_end_depends_only_on_what_is_described(
    steps: list[tuple[GangKey, tuple[GangKey, ...] | None]],
) -> None:
    """None: the description goes. The gangs told equal those of the descriptions left."""
    book, told = GangBook(), dict[GangKey, GangSpec]()
    left = dict[GangKey, GangSpec]()
    for key, unit in steps:
        if unit is None:
            left.pop(key, None)
            play(told, book.gone(key))
        else:
            left[key] = part(key, unit=unit if key in unit else ())
            play(told, book.told(left[key]))
    assert set(told) == expected(left)


def play(told: dict[GangKey, GangSpec], events: list[Event]) -> None:
    for event in events:
        if isinstance(event, GangUpserted):
            told[event.spec.key] = event.spec
        elif isinstance(event, GangGone):
            told.pop(event.key, None)


def expected(left: dict[GangKey, GangSpec]) -> set[GangKey]:
    alone = {key for key, spec in left.items() if not spec.unit}
    units = {spec.unit for spec in left.values() if spec.unit}
    whole = {u for u in units if all(key in left and left[key].unit == u for key in u)}
    return alone | {unit_key(unit) for unit in whole}
