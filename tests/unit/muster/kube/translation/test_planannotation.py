import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.cluster.events import PlanNote
from muster.kube.translation.planannotation import (
    encode_plan,
    plan_for_pod,
    plan_note,
    plan_places,
    without_pin,
)
from muster.kube.wire import LabelSelectorRequirement, NodeSelectorTerm

NAMES = st.text(alphabet="abcdefghijklmnopqrstuvwxyz0123456789-.", min_size=1, max_size=20)


@st.composite
def notes(draw: st.DrawFn) -> PlanNote:
    nodes = draw(st.lists(NAMES, min_size=1, max_size=4, unique=True))
    chosen = draw(st.lists(st.sampled_from(nodes), unique=True))
    return PlanNote(
        plan_id=draw(st.text(min_size=1, max_size=12)),
        node=nodes[0],
        spares=tuple(nodes[1:]),
        devices={node: tuple(draw(st.lists(st.text(max_size=8), max_size=3))) for node in chosen},
        rank=draw(st.integers(-1, 10**6)),
        generation=draw(st.integers(0, 2**62)),
    )


@given(notes())
def test_a_note_survives_the_annotation(note: PlanNote) -> None:
    text = encode_plan(note)
    assert plan_note(text) == note
    assert text == msgspec.json.encode(msgspec.json.decode(text)).decode()  # nothing between


@pytest.mark.parametrize(
    "text",
    [
        "",
        "null",
        "[]",
        "{",
        "\ud800".encode("utf-8", "surrogatepass").decode("latin-1"),
        "[" * 100_000,
        '{"id":"p"}',
        '{"id":"","node":"n"}',
        '{"id":"p","node":""}',
        '{"id":"p","node":1}',
        '{"id":"p","node":"n","spares":["n"]}',
        '{"id":"p","node":"n","spares":["a","a"]}',
        '{"id":"p","node":"n","spares":[""]}',
        '{"id":"p","node":"n","devices":{"other":["g"]}}',
        '{"id":"p","node":"n","devices":{"n":"g"}}',
        '{"id":"p","node":"n","rank":-2}',
        '{"id":"p","node":"n","generation":-1}',
    ],
)
def test_anything_that_muster_cannot_have_written_is_no_note(text: str) -> None:
    assert plan_note(text) is None


def test_fields_of_later_versions_are_ignored() -> None:
    assert plan_note('{"id":"p","node":"n","later":[1]}') == PlanNote("p", "n")


@given(notes(), st.integers(0, 9), st.sampled_from([b"", b"key"]))
def test_where_a_plan_has_its_nodes_and_its_rank_just_these_stand(
    note: PlanNote, at: int, key: bytes
) -> None:
    text = plan_for_pod(note, "uid", key).encode()
    found = plan_places(text, note.node.encode(), at)
    if note.devices or b"\\" in text:
        assert found is None
        return
    assert found is not None
    whole = b" " * at + text
    named = [whole[slice(*span)].decode() for span in found.nodes]
    assert named == [note.node, *note.spares]
    assert whole[slice(*found.id)].decode() == note.plan_id
    rank = None if found.rank is None else int(whole[slice(*found.rank)])
    assert rank == (None if note.rank < 0 else note.rank)
    seal = "" if found.seal is None else whole[slice(*found.seal)].decode()
    assert (seal == "") == (key == b"")
    assert text.decode() in (encode_plan(note), encode_plan(note)[:-1] + f',"seal":"{seal}"}}')


def at(*nodes: str, zone: str = "") -> NodeSelectorTerm:
    fields = tuple(
        LabelSelectorRequirement(key="metadata.name", operator="In", values=(n,)) for n in nodes
    )
    labels = (LabelSelectorRequirement(key="zone", operator="In", values=(zone,)),) if zone else ()
    return NodeSelectorTerm(match_expressions=labels, match_fields=fields)


@pytest.mark.parametrize(
    ("released", "before"),
    [
        # Nothing of its own: nothing is left.
        ((at("n"),), None),
        ((at("n"), at("s")), None),
        # Terms of its own come back as they were.
        ((at("n", zone="a"), at("n", zone="b")), (at(zone="a"), at(zone="b"))),
        ((at("own", "n", zone="a"),), (at("own", zone="a"),)),
        # Not our pin: unchanged.
        ((at("elsewhere"),), (at("elsewhere"),)),
        ((at("n"), at(zone="a")), (at("n"), at(zone="a"))),
        (None, None),
    ],
)
def test_the_pin_that_the_note_explains_is_taken_off(
    released: tuple[NodeSelectorTerm, ...] | None, before: tuple[NodeSelectorTerm, ...] | None
) -> None:
    assert without_pin(released, PlanNote("p", "n", ("s",))) == before
    assert without_pin(released, None) == released
