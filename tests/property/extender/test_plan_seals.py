"""Nobody without the key changes a plan, or moves it to another pod."""

from dataclasses import replace
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from muster.cluster.events import PlanNote
from muster.kube.translation.planannotation import plan_for_pod, plan_note, plan_wire, text_of
from muster.kube.translation.planseal import (
    Carrier,
    ExpectedMember,
    PlanKeys,
    is_sealed_for,
    sealed_place,
)

KEYS = PlanKeys(own=b"k" * 32, others=(b"o" * 32,))
WORDS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8)
NODES = st.lists(WORDS, min_size=1, max_size=3, unique=True)


@st.composite
def notes(draw: st.DrawFn) -> PlanNote:
    node, *spares = draw(NODES)
    devices = draw(
        st.dictionaries(st.sampled_from([node, *spares]), st.lists(WORDS, max_size=2).map(tuple))
    )
    rank, generation = draw(st.integers(-1, 99)), draw(st.integers(0, 1 << 40))
    return PlanNote(draw(WORDS), node, tuple(spares), devices, rank, generation)


CARRIERS = st.builds(Carrier, WORDS, WORDS, WORDS, st.integers(-1, 99), st.just(1_000.0))


def sealed(note: PlanNote, pod: Carrier, *, as_place: bool) -> str:
    if not as_place:
        return plan_for_pod(note, pod.uid, KEYS.own)
    member = ExpectedMember(pod.namespace, pod.gang, pod.number, until=1_000.0)
    return text_of(sealed_place(plan_wire(note), member, KEYS))


@given(notes(), CARRIERS, st.booleans())
def test_what_muster_seals_is_accepted_and_read_back(
    note: PlanNote,
    pod: Carrier,
    as_place: bool,  # noqa: FBT001  hypothesis gives it by position
) -> None:
    text = sealed(note, pod, as_place=as_place)
    assert is_sealed_for(text, pod, KEYS)
    assert plan_note(text) == note


@given(notes(), CARRIERS, st.booleans(), st.data())
def test_a_plan_with_any_other_value_is_refused(
    note: PlanNote,
    pod: Carrier,
    as_place: bool,  # noqa: FBT001
    data: st.DataObject,
) -> None:
    found: dict[str, Any] = msgspec.json.decode(sealed(note, pod, as_place=as_place))
    others: dict[str, st.SearchStrategy[Any]] = {
        "id": WORDS,
        "node": WORDS,
        "spares": st.lists(WORDS, max_size=3),
        "devices": st.dictionaries(WORDS, st.lists(WORDS, max_size=2), max_size=2),
        "rank": st.integers(-1, 99),
        "generation": st.integers(0, 1 << 40),
        "seal": st.text("0123456789abcdef.", max_size=50),
    }
    field = data.draw(st.sampled_from(sorted(others)))
    defaults = {"spares": [], "devices": {}, "rank": -1, "generation": 0, "seal": ""}
    before = found.get(field, defaults.get(field))
    found[field] = data.draw(others[field].filter(lambda value: value != before))
    assert not is_sealed_for(msgspec.json.encode(found).decode(), pod, KEYS)


@given(notes(), CARRIERS, CARRIERS)
def test_a_plan_on_another_pod_is_refused(note: PlanNote, pod: Carrier, other: Carrier) -> None:
    if pod.uid != other.uid:
        assert not is_sealed_for(sealed(note, pod, as_place=False), other, KEYS)
    whose = replace(other, uid=pod.uid)
    if whose != pod:
        assert not is_sealed_for(sealed(note, pod, as_place=True), other, KEYS)


@given(st.text(max_size=60), CARRIERS)
def test_no_text_makes_the_reader_raise(text: str, pod: Carrier) -> None:
    assert not is_sealed_for(text, pod, KEYS)
    assert not is_sealed_for(
        msgspec.json.encode({"id": "p", "node": "n", "seal": text}).decode(), pod, KEYS
    )
