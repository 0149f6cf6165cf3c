"""What real GPUs told, kept in tests/data/cards: the simulated machines and the stub say the same.

::

    muster device-plugin look --facts ──► tests/data/cards/h200.json ─┬─► our inventory of it
      (UUID and PCI address replaced)                                 ├─► the simulated machine
                                                                      └─► the stub of NVML
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import pytest
from support.devices.machines import inventory as simulated
from support.devices.nvmlmachine import Machine

from deviceplugin.backends.nvml.backend import NvmlBackend
from deviceplugin.backends.nvml.inventory import Surroundings, inventory_of
from deviceplugin.backends.nvml.wire import GpuFacts, Looked, ProfileFacts
from deviceplugin.backends.simulated.machine import load
from deviceplugin.model.inventory import Gpu, GpuMigProfile, PciPlace
from deviceplugin.model.signals import GpuReading

CARDS = Path(__file__).parents[4] / "data/cards"
MACHINES = {"h100": "dgx-h100", "h200": "dgx-h200"}
AROUND = Surroundings(PciPlace, lambda _: "0x030200", lambda _gpu, _instance, _compute: ())


class Card(msgspec.Struct):
    """A file of tests/data/cards. `profiles`: what nvmlGpuInstanceProfileInfo_t has besides."""

    seen: dict[str, str]
    facts: Looked
    reading: GpuReading
    profiles: dict[str, dict[str, Any]]


@dataclass(frozen=True)
class Pair:
    """A real card, our inventory of it, and the simulated machine that has such GPUs."""

    card: Card
    gpu: Gpu
    machine: str

    @property
    def facts(self) -> GpuFacts:
        return self.card.facts.gpus[0]


@pytest.fixture(params=sorted(MACHINES))
def pair(request: pytest.FixtureRequest) -> Pair:
    card = msgspec.json.decode((CARDS / f"{request.param}.json").read_bytes(), type=Card)
    found = inventory_of(card.facts, card.facts.gpus, AROUND)
    return Pair(card, found.gpus[0], MACHINES[request.param])


def profiles(gpu: Gpu) -> Mapping[str, GpuMigProfile]:
    assert gpu.mig is not None
    return {profile.name: profile for profile in gpu.mig.profiles}


def told(gpu: GpuFacts) -> tuple[ProfileFacts, ...]:
    assert gpu.mig is not None
    return gpu.mig.profiles


def test_every_kept_card_has_a_simulated_machine() -> None:
    assert {path.stem for path in CARDS.glob("*.json")} == set(MACHINES)


def test_profiles_have_the_names_that_the_driver_itself_gives_them(pair: Pair) -> None:
    assert list(profiles(pair.gpu)) == [p.name.removeprefix("MIG ") for p in told(pair.facts)]


def test_a_simulated_gpu_is_the_real_one(pair: Pair) -> None:
    made = simulated(pair.machine).gpus[0]
    for what in ("model", "memory_mib", "compute", "device_id", "pci_class", "vendor"):
        assert getattr(made, what) == getattr(pair.gpu, what), what
    assert profiles(made) == profiles(pair.gpu)


def test_a_simulated_instance_has_the_engines_of_the_real_one(pair: Pair) -> None:
    for name, profile in profiles(pair.gpu).items():
        found = simulated(pair.machine, cuts={0: f"{name}@{profile.starts[0]}"}).gpus[0]
        assert found.mig is not None
        (instance,) = found.mig.instances
        real = pair.card.profiles[name]
        assert instance.multiprocessors == real["multiprocessors"], name
        assert instance.memory_mib == profile.memory_mib, name
        engines = {engine: count for engine, count in real["engines"].items() if count}
        assert dict(instance.engines) == engines, name


def test_a_simulated_gpu_has_the_limits_of_the_real_one(pair: Pair) -> None:
    made, read = load(pair.machine).gpu, pair.card.reading
    assert made.temperature.slowdown == read.slowdown_at
    assert made.power.limit == read.power_limit
    assert made.sm_clock == read.sm_clock


async def test_the_stub_knows_the_profiles_and_places_of_the_real_one(
    pair: Pair, machine: Machine, nvml: NvmlBackend
) -> None:
    """Memory only of the model that the stub is: an H100. It does not tell names."""
    assert machine.library
    stub = (await nvml.facts()).gpus[0]
    same = stub.name == pair.facts.name

    def form(profile: ProfileFacts) -> object:
        memory = profile.memory_mib if same else 0
        return msgspec.structs.replace(profile, memory_mib=memory, name="")

    assert [*map(form, told(stub))] == [*map(form, told(pair.facts))]
