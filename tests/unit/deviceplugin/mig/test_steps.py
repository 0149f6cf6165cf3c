"""The next step of a GPU."""

from dataclasses import replace

import pytest
from support.devices.migcards import gpu, untold

from deviceplugin.mig.layouts import LayoutError, LayoutRule
from deviceplugin.mig.steps import Recut, Step, SwitchMode, devices_of, next_step
from deviceplugin.model.inventory import Gpu, GpuMig

BALANCED = LayoutRule(enabled=True, counts={"1g.10gb": 2, "2g.20gb": 1, "3g.40gb": 1})
OFF = LayoutRule(enabled=False)


def step(of: Gpu, rule: LayoutRule, *in_use: str) -> Step | None:
    return next_step(of, rule, frozenset(in_use))


def mig_of(of: Gpu) -> GpuMig:
    assert of.mig is not None
    return of.mig


def test_mig_is_switched_on_before_anything_is_made() -> None:
    assert step(gpu("H100-80", enabled=False), BALANCED) == SwitchMode("GPU-0", enabled=True)


def test_what_is_missing_is_made_and_what_is_too_much_removed() -> None:
    has = gpu("H100-80", "7g.80gb@0")
    assert step(has, BALANCED) == Recut(
        "GPU-0",
        ("MIG-0-7g.80gb@0",),
        (("1g.10gb", 2), ("1g.10gb", 3), ("2g.20gb", 0), ("3g.40gb", 4)),
    )


def test_equal_instances_are_not_touched() -> None:
    has = gpu("H100-80", "3g.40gb@4", "2g.20gb@2", "1g.10gb@1", "1g.10gb@0")
    assert step(has, BALANCED) is None
    has = gpu("H100-80", "3g.40gb@4", "2g.20gb@2", "1g.20gb@0")
    assert step(has, BALANCED) == Recut(
        "GPU-0", ("MIG-0-1g.20gb@0",), (("1g.10gb", 0), ("1g.10gb", 1))
    )


def test_those_that_stand_where_the_rest_would_not_fit_are_moved() -> None:
    """Beside a 3g at 0 there is no room for a 2g and two 1g."""
    has = gpu("H100-80", "3g.40gb@0", "1g.10gb@6")
    recut = step(has, BALANCED)
    assert isinstance(recut, Recut)
    assert set(recut.remove) == {"MIG-0-3g.40gb@0", "MIG-0-1g.10gb@6"}


def test_a_gpu_that_is_as_wanted_has_no_step() -> None:
    assert (
        step(
            gpu("H100-80", "1g.10gb@5", "1g.10gb@6", "2g.20gb@0"),
            _counts(("1g.10gb", 2), ("2g.20gb", 1)),
        )
        is None
    )
    assert step(gpu("H100-80", enabled=False), OFF) is None
    assert step(gpu("H100-80"), LayoutRule(enabled=True)) is None


def _counts(*counts: tuple[str, int]) -> LayoutRule:
    return LayoutRule(enabled=True, counts=dict(counts))


def test_instances_go_before_mig_is_switched_off() -> None:
    has = gpu("H100-80", "1g.10gb@6")
    assert step(has, OFF) == Recut("GPU-0", ("MIG-0-1g.10gb@6",), ())
    assert step(gpu("H100-80"), OFF) == SwitchMode("GPU-0", enabled=False)


def test_an_instance_in_use_holds_back_only_what_would_remove_it() -> None:
    has = gpu("H100-80", "1g.10gb@6")
    with pytest.raises(LayoutError, match=r"GPU-0 \(index 0, NVIDIA H100.*in use"):
        step(has, OFF, "MIG-0-1g.10gb@6")
    more = step(has, _counts(("1g.10gb", 1), ("3g.40gb", 1)), "MIG-0-1g.10gb@6")
    assert more == Recut("GPU-0", (), (("3g.40gb", 0),))


def test_mig_mode_is_not_switched_on_a_gpu_in_use() -> None:
    with pytest.raises(LayoutError, match="only on idle GPUs"):
        step(gpu("H100-80", enabled=False), BALANCED, "GPU-0")


def test_replicas_and_shares_are_in_use_by_their_device() -> None:
    assert devices_of(["GPU-0::3", "MIG-1::mem7", "GPU-2"]) == {"GPU-0", "MIG-1", "GPU-2"}


@pytest.mark.parametrize("pending", [True, False])
def test_a_mode_that_waits_for_a_reset_is_switched_again(*, pending: bool) -> None:
    """The driver then says that a reset is due, or the pending change is taken back."""
    has = gpu("H100-80", enabled=not pending)
    waits = replace(has, mig=replace(mig_of(has), pending=pending))
    assert step(waits, LayoutRule(enabled=True)) == SwitchMode("GPU-0", enabled=True)


def test_a_layout_that_cannot_fit_is_refused_before_mig_is_switched_on() -> None:
    too_many = _counts(("3g.40gb", 3))
    off = gpu("H100-80", enabled=False)
    with pytest.raises(LayoutError, match=r"3 of 3g.40gb do not fit; 2 would"):
        step(off, too_many)
    with pytest.raises(LayoutError, match=r"3 of 3g.40gb do not fit; it has at most 2"):
        step(untold(off), too_many)


def test_a_gpu_without_mig_can_only_be_left_alone() -> None:
    plain = replace(gpu("A30"), mig=None)
    assert step(plain, OFF) is None
    with pytest.raises(LayoutError, match="it has no MIG; exclude it"):
        step(plain, LayoutRule(enabled=True))


def test_instances_whose_place_is_not_reported_are_not_touched() -> None:
    has = gpu("H100-80", "1g.10gb@6")
    unknown = replace(mig_of(has).instances[0], start=-1)
    with pytest.raises(LayoutError, match=r"MIG-0-1g.10gb@6 is not known.*nvidia-cap1"):
        step(replace(has, mig=replace(mig_of(has), instances=(unknown,))), BALANCED)


def test_a_part_of_a_gpu_instance_makes_room() -> None:
    """1c.3g.40gb is never wanted: it was made by hand."""
    has = gpu("H100-80", "3g.40gb@0")
    part = replace(mig_of(has).instances[0], profile="1c.3g.40gb")
    has = replace(has, mig=replace(mig_of(has), instances=(part,)))
    assert step(has, _counts(("3g.40gb", 1))) == Recut(
        "GPU-0", ("MIG-0-3g.40gb@0",), (("3g.40gb", 4),)
    )
