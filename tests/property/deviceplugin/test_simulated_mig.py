"""Cutting a simulated GPU: all that is asked or nothing, and never two instances in one place."""

import asyncio
from collections.abc import Coroutine
from typing import TypeVar

from hypothesis import given
from hypothesis import strategies as st

from deviceplugin.backends.simulated.backend import Simulated
from deviceplugin.backends.simulated.machine import load
from deviceplugin.errors import BackendError
from deviceplugin.model.inventory import GpuMig, MigInstance
from deviceplugin.model.signals import InventoryChanged

T = TypeVar("T")
PROFILES = (
    "1g.10gb",
    "1g.10gb+me",
    "1g.20gb",
    "2g.20gb",
    "3g.40gb",
    "4g.40gb",
    "7g.80gb",
    "5g.1gb",
)
SLOTS = st.tuples(st.sampled_from(PROFILES), st.integers(0, 8))
STEPS = st.lists(
    st.tuples(st.lists(SLOTS, max_size=3), st.lists(st.integers(0, 8), max_size=2)), max_size=8
)


def run(step: Coroutine[None, None, T]) -> T:
    return asyncio.run(step)


def mig_of(backend: Simulated, gpu: int) -> GpuMig:
    found = run(backend.inventory()).gpus[gpu].mig
    assert found is not None
    return found


def slices(instance: MigInstance) -> set[int]:
    return set(range(instance.start, instance.start + instance.size))


@given(STEPS)
def test_instances_stand_where_their_profile_may_and_nowhere_twice(
    steps: list[tuple[list[tuple[str, int]], list[int]]],
) -> None:
    backend = Simulated(load("dgx-h100"), node="n")
    uuid = run(backend.inventory()).gpus[0].uuid
    run(backend.set_mig_mode(uuid, enabled=True))
    for make, numbers in steps:
        before = mig_of(backend, 0)
        remove = [i.uuid for n, i in enumerate(before.instances) if n in numbers]
        try:
            run(backend.cut(uuid, remove, make))
        except BackendError:
            assert mig_of(backend, 0) == before
            continue
        after = mig_of(backend, 0)
        kept = {i.uuid for i in before.instances} - set(remove)
        assert kept <= {i.uuid for i in after.instances}
        assert len(after.instances) == len(kept) + len(make)
        starts = {profile.name: profile.starts for profile in after.profiles}
        taken: set[int] = set()
        for instance in after.instances:
            assert instance.start in starts[instance.profile]
            assert not slices(instance) & taken
            taken |= slices(instance)
        assert len({i.gpu_instance for i in after.instances}) == len(after.instances)
        assert sum(i.compute_slices for i in after.instances) <= 8
    others = run(backend.inventory()).gpus[1:]
    assert not any(gpu.mig and gpu.mig.instances for gpu in others)


@given(st.permutations(range(7)))
def test_an_instance_has_one_uuid_for_its_place_in_whichever_order_it_is_made(
    order: list[int],
) -> None:
    backend = Simulated(load("dgx-h100"), node="n")
    uuid = run(backend.inventory()).gpus[0].uuid
    run(backend.set_mig_mode(uuid, enabled=True))
    for start in order:
        run(backend.cut(uuid, [], [("1g.10gb", start)]))
        assert isinstance(run(backend.signal()), InventoryChanged)
    whole = Simulated(load("dgx-h100/all-1g.10gb"), node="n")
    assert mig_of(backend, 0).instances == mig_of(whole, 0).instances
