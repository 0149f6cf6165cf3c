"""Every kind of contradiction by itself, from the specification alone, and the users' page."""

from dataclasses import replace
from pathlib import Path

import pytest

from muster.cluster.ids import GangKey
from muster.cluster.specs.contradictions import Contradiction, ContradictionKind, contradictions
from muster.cluster.specs.gangspec import GangSpec, RoleSpec

LEVELS = ("zone", "block", "rack", "host")
PLAIN = GangSpec(GangKey("d/ns/g"), "ns", "g", "d", min_count=4, size=4)
CASES: dict[ContradictionKind, tuple[dict[str, object], str]] = {
    ContradictionKind.NEGATIVE_MINIMUM: ({"min_count": -1}, 'min_count: "-1"'),
    ContradictionKind.MINIMUM_OVER_SIZE: (
        {"min_count": 5},
        'min_count: "5" is not allowed: the gang has 4',
    ),
    ContradictionKind.MOST_UNDER_MINIMUM: (
        {"max_count": 3},
        'max_count: "3" is not allowed: at least 4',
    ),
    ContradictionKind.ROLES_OVER_SIZE: (
        {"roles": (RoleSpec("a", 3), RoleSpec("b", 2))},
        'roles: "5"',
    ),
    ContradictionKind.SLICE_WITHOUT_LEVEL: ({"slice_size": 2}, 'slice_size: "2"'),
    ContradictionKind.LEVEL_WITHOUT_SLICE: ({"slice_level": "rack"}, 'slice_level: "rack"'),
    ContradictionKind.SLICE_NOT_POSITIVE: (
        {"slice_size": 0, "slice_level": "rack"},
        'slice_size: "0"',
    ),
    ContradictionKind.SLICE_OVER_SIZE: (
        {"slice_size": 8, "slice_level": "rack"},
        'slice_size: "8"',
    ),
    ContradictionKind.NO_MULTIPLE: (
        {"slice_size": 2, "slice_level": "rack", "wider_slices": (("block", 3),)},
        'slice_size: "3" is not allowed: such slices are to consist of whole slices of 2',
    ),
    ContradictionKind.UNKNOWN_LEVEL: (
        {"required_level": "row"},
        "this cluster's levels are zone, block, rack, host",
    ),
    ContradictionKind.SLICES_CROSSED: (
        {"slice_size": 2, "slice_level": "block", "wider_slices": (("rack", 4),)},
        'slice_level: "block" is not allowed: such slices are parts of slices in rack',
    ),
    ContradictionKind.SLICE_AROUND_REQUIRED: (
        {"slice_size": 2, "slice_level": "zone", "required_level": "rack"},
        'slice_level: "zone" is not allowed: all members are to share one rack',
    ),
    ContradictionKind.PREFERRED_AROUND_REQUIRED: (
        {"required_level": "rack", "preferred_level": "zone"},
        'preferred_level: "zone" is not allowed: rack is required already',
    ),
    ContradictionKind.SPARES_OVER_SIZE: ({"standby": 99}, 'standby: "99"'),
    ContradictionKind.RELAXES_NOTHING: ({"relax_after": 60.0}, 'relax_after: "60.0"'),
}
PAGE = Path(__file__).parents[5] / "docs" / "contradictions.md"


def found(**fields: object) -> list[Contradiction]:
    return contradictions(replace(PLAIN, **fields), LEVELS)  # type: ignore[arg-type]  # by name


@pytest.mark.parametrize("kind", ContradictionKind)
def test_each_kind_is_found_alone_and_names_field_and_value(kind: ContradictionKind) -> None:
    fields, text = CASES[kind]
    (only,) = found(**fields)
    assert only.kind is kind
    assert text in str(only)


def test_a_plain_gang_contradicts_nothing() -> None:
    sliced = {"slice_size": 2, "slice_level": "rack", "required_level": "rack"}
    assert found() == found(**sliced) == found(required_level="block", preferred_level="rack") == []


def test_a_field_is_called_what_its_user_called_it() -> None:
    written = (("slice_size", "metadata.annotations[segment-size]"),)
    (only,) = found(slice_size=8, slice_level="rack", written=written)
    assert str(only).startswith('metadata.annotations[segment-size]: "8" is not allowed')


def test_what_reading_found_wrong_is_not_said_twice() -> None:
    assert found(min_count=5, problems=('min_count: "5" is too much',)) == []


def test_levels_that_are_not_known_are_not_judged() -> None:
    spec = replace(PLAIN, required_level="row", preferred_level="slot")
    assert contradictions(spec, ()) == []


def test_the_page_for_users_has_every_kind() -> None:
    text = PAGE.read_text(encoding="utf-8")
    rows = {line.split("|")[1].strip() for line in text.splitlines() if line.startswith("| ")}
    assert {kind.value for kind in ContradictionKind} <= rows
