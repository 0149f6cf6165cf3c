"""Placing against every way that there is, and reconfiguring that ends where it should."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st
from support.devices.migcards import CARDS, all_ways, counted, gpu, profiles

from deviceplugin.mig.layouts import LayoutError, LayoutRule
from deviceplugin.mig.placing import InstanceSlot, mask, place
from deviceplugin.mig.steps import Recut, next_step

cards = st.sampled_from(sorted(CARDS))


@st.composite
def layouts(draw: st.DrawFn) -> tuple[str, dict[str, int]]:
    """A card and how many of each of its profiles, small numbers mostly."""
    card = draw(cards)
    names = [profile.name for profile in profiles(card)]
    return card, draw(st.dictionaries(st.sampled_from(names), st.integers(0, 4), max_size=4))


@st.composite
def cut_cards(draw: st.DrawFn) -> tuple[str, frozenset[InstanceSlot], frozenset[InstanceSlot]]:
    """A card, how it is cut and which instances are in use."""
    card = draw(cards)
    ways = all_ways(card)
    counts = draw(st.sampled_from(sorted(ways)))
    standing = draw(st.sampled_from(sorted(ways[counts], key=sorted)))
    busy = draw(st.frozensets(st.sampled_from(sorted(standing)))) if standing else frozenset()
    return card, standing, busy


def placed(
    card: str,
    counts: dict[str, int],
    standing: frozenset[InstanceSlot],
    busy: frozenset[InstanceSlot],
) -> frozenset[InstanceSlot] | None:
    try:
        slots = place(profiles(card), counts, standing, busy)
    except LayoutError:
        return None
    known = {profile.name: profile for profile in profiles(card)}
    taken = 0
    for slot in slots:
        assert slot.start in known[slot.profile].starts
        assert not taken & mask(known[slot.profile], slot.start)
        taken |= mask(known[slot.profile], slot.start)
    return frozenset(slots)


@given(layouts())
def test_a_layout_is_placed_when_and_only_when_it_can_be(
    layout: tuple[str, dict[str, int]],
) -> None:
    card, counts = layout
    wanted = tuple(sorted((name, n) for name, n in counts.items() if n))
    slots = placed(card, counts, frozenset(), frozenset())
    assert (slots is not None) == (wanted in all_ways(card))
    assert slots is None or counted(slots) == wanted


@given(cut_cards(), st.data())
def test_nothing_in_use_moves_and_no_way_keeps_more(
    cut: tuple[str, frozenset[InstanceSlot], frozenset[InstanceSlot]], data: st.DataObject
) -> None:
    card, standing, busy = cut
    counts = data.draw(st.sampled_from(sorted(all_ways(card))))
    slots = placed(card, dict(counts), standing, busy)
    allowed = [way for way in all_ways(card)[counts] if busy <= way]
    assert (slots is not None) == bool(allowed)
    if slots is not None:
        assert busy <= slots
        assert len(standing & slots) == max(len(standing & way) for way in allowed)


@given(cut_cards(), st.data())
def test_a_recut_makes_exactly_what_is_wanted_and_needs_no_second(
    cut: tuple[str, frozenset[InstanceSlot], frozenset[InstanceSlot]], data: st.DataObject
) -> None:
    card, standing, _ = cut
    counts = dict(data.draw(st.sampled_from(sorted(all_ways(card)))))
    rule = LayoutRule(enabled=True, counts=counts)
    has = gpu(card, *[f"{s.profile}@{s.start}" for s in sorted(standing)])
    step = next_step(has, rule, frozenset())
    after = set(standing)
    if step is not None:
        assert isinstance(step, Recut)
        after -= {
            InstanceSlot(u.split("-", 2)[2].split("@")[0], int(u.split("@")[1]))
            for u in step.remove
        }
        after |= {InstanceSlot(*made) for made in step.make}
    assert Counter(slot.profile for slot in after) == Counter(counts)
    again = gpu(card, *[f"{s.profile}@{s.start}" for s in sorted(after)])
    assert next_step(again, rule, frozenset()) is None
