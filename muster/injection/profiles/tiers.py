"""Tiers, spot capacity and accelerator taints: data of this package, read once by the shells."""

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from typing import Final, TypeVar

import msgspec

from muster.injection.patching.additions import AdditionStruct
from muster.kube.wire import Taint

T = TypeVar("T")
_FILES: Final = "muster.injection.profiles"


class Tier(AdditionStruct, frozen=True):
    """``models``: product names, as a node's product label has them among its words."""

    models: tuple[str, ...] = ()


class Tiers(AdditionStruct, frozen=True):
    """``key``: node label. ``workloads``: kind of work → the tier it needs."""

    key: str = "gpu-tier"
    tiers: dict[str, Tier] = msgspec.field(default_factory=dict)
    workloads: dict[str, str] = msgspec.field(default_factory=dict)


class Spot(AdditionStruct, frozen=True):
    """One provider's capacity that may be taken back."""

    name: str
    label: str
    value: str
    source: str
    taint: Taint | None = None


class AcceleratorTaint(AdditionStruct, frozen=True):
    """A taint that says "accelerators here"; an empty value stands for every value.

    ``asks``: how the names of the resources begin that a pod must ask for; "" for any.
    """

    key: str
    source: str
    value: str = ""
    asks: str = ""


@dataclass(frozen=True, slots=True)
class PlacesData:
    """Where accelerator pods may go."""

    tiers: Tiers
    spot: Mapping[str, Spot]
    taints: tuple[AcceleratorTaint, ...]


def load() -> PlacesData:
    """Return the data files."""
    spot = _read("spot.yaml", tuple[Spot, ...])
    return PlacesData(
        _read("tiers.yaml", Tiers),
        {each.name: each for each in spot},
        _read("taints.yaml", tuple[AcceleratorTaint, ...]),
    )


def _read(file: str, kind: type[T]) -> T:
    data = resources.files(_FILES).joinpath(file).read_bytes()
    return msgspec.yaml.decode(data, type=kind)
