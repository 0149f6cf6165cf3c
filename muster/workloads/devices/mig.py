"""MIG cards: which profiles a product has and where their instances stand (``mig.yaml``).

A profile's places are bit masks over the card's memory slices; two instances can stand
together when their masks do not overlap (``muster.cluster.specs.deviceshape.MigProfile``). What
counts of compute slices the published tables allow follows from that.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import resources
from itertools import pairwise
from typing import Final, Literal

import msgspec

from muster.cluster.devices.needs import is_model
from muster.cluster.specs.deviceshape import MigProfile

_MEDIA: Final = 1 << 16  # a bit above all slices: the one set of extra media engines
_ENGINES: Final = 17  # the lowest of the bits above that, one for the media engines of each slice


class _Profile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    shape: str
    size: int
    starts: tuple[int, ...]
    media: bool = False
    engines: Literal["", "slices", "all", "none"] = ""

    def bits(self, start: int, slices: int) -> int:
        """Return what an instance takes at a start, on a card of so many slices."""
        mine = ((1 << self.size) - 1) << start
        engines = {"slices": mine, "all": (1 << slices) - 1}.get(self.engines, 0)
        return mine | engines << _ENGINES | (_MEDIA if self.media else 0)


class _Geometry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    name: str
    slices: int
    profiles: tuple[_Profile, ...]


class _Card(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    products: tuple[str, ...]
    geometry: str
    profiles: dict[str, str]
    source: str


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    version: Literal[1]
    geometries: tuple[_Geometry, ...]
    cards: tuple[_Card, ...]


@dataclass(frozen=True, slots=True)
class Card:
    """One row of the file: beginnings of product names, and its profiles."""

    products: tuple[str, ...]
    profiles: tuple[MigProfile, ...]

    def profile(self, name: str) -> MigProfile | None:
        """Return a profile by name."""
        return next((each for each in self.profiles if each.name == name), None)


def load() -> tuple[Card, ...]:
    """Return the cards of the data file. Raises ``ValueError`` when it contradicts itself."""
    data = resources.files("muster.workloads.devices").joinpath("mig.yaml").read_bytes()
    file = msgspec.yaml.decode(data, type=_File)
    geometries = {each.name: each for each in file.geometries}
    return tuple(Card(card.products, tuple(_profiles(card, geometries))) for card in file.cards)


def _profiles(card: _Card, geometries: Mapping[str, _Geometry]) -> Iterator[MigProfile]:
    geometry = geometries[card.geometry]
    shapes = {profile.shape: profile for profile in geometry.profiles}
    for name, called in card.profiles.items():
        shape = shapes[called]
        if max(shape.starts) + shape.size > geometry.slices or any(
            later - earlier < shape.size for earlier, later in pairwise(shape.starts)
        ):
            raise ValueError(f"mig.yaml: {called}: its places overlap or leave the card")
        places = ((start, shape.bits(start, geometry.slices)) for start in shape.starts)
        yield MigProfile(name, tuple(places))


def card_of(cards: tuple[Card, ...], product: str, profiles: tuple[str, ...]) -> Card | None:
    """Return the card of a product, else the first one that has all these profiles."""
    found = [
        (len(name), number)
        for number, card in enumerate(cards)
        for name in card.products
        if is_model(product, name)
    ]
    if found:
        return cards[min(found, key=lambda entry: (-entry[0], entry[1]))[1]]
    return next((c for c in cards if profiles and all(map(c.profile, profiles))), None)


def pack(card: Card, counts: Mapping[str, int]) -> tuple[MigProfile, ...] | None:
    """Return the places of these instances on one card, ``None`` when they do not fit together.

    Largest first, tried out: a card has few slices.
    """
    wanted = [p for p in map(card.profile, _spelled_out(counts)) if p is not None]
    if len(wanted) < sum(counts.values()):
        return None
    wanted.sort(key=lambda profile: -_size(profile))
    placed = _place(wanted, 0)
    if placed is None:
        return None
    found: dict[str, list[tuple[int, int]]] = {}
    for profile, place in zip(wanted, placed, strict=True):
        found.setdefault(profile.name, []).append(place)
    return tuple(MigProfile(name, tuple(sorted(places))) for name, places in found.items())


def _spelled_out(counts: Mapping[str, int]) -> list[str]:
    return [name for name, count in sorted(counts.items()) for _ in range(count)]


def _place(wanted: list[MigProfile], used: int) -> list[tuple[int, int]] | None:
    if not wanted:
        return []
    for start, bits in wanted[0].masks:
        if not bits & used:
            rest = _place(wanted[1:], used | bits)
            if rest is not None:
                return [(start, bits), *rest]
    return None


def layout(card: Card, counts: Mapping[str, int], most: int) -> list[tuple[MigProfile, ...]] | None:
    """Return what stands on each card of a node, given the instances of all of them.

    As few equal cards as will hold them (mig-parted cuts a node's cards alike), else card
    by card as full as they get; ``None`` when ``most`` cards cannot hold them.
    """
    for cards in range(1, most + 1):
        if all(count % cards == 0 for count in counts.values()):
            each = pack(card, {name: count // cards for name, count in counts.items()})
            if each is not None:
                return [each] * cards
    return _unequal(card, counts, most)


def _unequal(
    card: Card, counts: Mapping[str, int], most: int
) -> list[tuple[MigProfile, ...]] | None:
    left = dict(counts)
    found: list[tuple[MigProfile, ...]] = []
    while any(left.values()) and len(found) < most:
        mine: dict[str, int] = {}
        for name in sorted(left, key=lambda n: -_slices(card, n)):
            while left[name] and pack(card, mine | {name: mine.get(name, 0) + 1}) is not None:
                mine[name] = mine.get(name, 0) + 1
                left[name] -= 1
        placed = pack(card, mine)
        if not placed:
            return None
        found.append(placed)
    return None if any(left.values()) else found


def _slices(card: Card, name: str) -> int:
    profile = card.profile(name)
    return 0 if profile is None else _size(profile)


def _size(profile: MigProfile) -> int:
    """Return how many memory slices an instance takes."""
    return (profile.masks[0][1] & (_MEDIA - 1)).bit_count()
