"""Layouts in mig-parted's form, and those that need no file."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.devices.migcards import CARDS, gpu, untold

from deviceplugin.mig import builtin, layouts
from deviceplugin.mig.layouts import LayoutError, LayoutRule, rule_for
from deviceplugin.mig.placing import place
from deviceplugin.model.inventory import Gpu, GpuMig, GpuMigProfile

FILE = """
version: v1
mig-configs:
  all-disabled:
    - devices: all
      mig-enabled: false
  mine:
    - devices: [0, 1]
      mig-enabled: true
      mig-devices: {"1g.10gb": 2, "3g.40gb": 1}
    - device-filter: ["0x233010DE", "0x20b010de"]
      devices: [1]
      mig-enabled: true
      mig-devices: {}
"""


def test_a_file_in_mig_partheds_form_is_read() -> None:
    read = layouts.parse(FILE, source="layouts.yaml")
    assert read["all-disabled"] == (LayoutRule(enabled=False),)
    first, second = read["mine"]
    assert (first.enabled, dict(first.counts)) == (True, {"1g.10gb": 2, "3g.40gb": 1})
    assert first.devices == frozenset((0, 1))
    assert second.filters == frozenset(("0X233010DE", "0X20B010DE"))


def test_the_last_entry_that_means_a_gpu_counts() -> None:
    mine = layouts.parse(FILE, source="layouts.yaml")["mine"]
    h100 = replace(gpu("H100-80", index=1), device_id="0x233010DE")
    assert rule_for(h100, mine) is mine[1]
    assert rule_for(replace(h100, device_id="0x233110DE"), mine) is mine[0]
    assert rule_for(replace(h100, index=2), mine) is None


@pytest.mark.parametrize(
    ("was", "becomes", "said"),
    [
        ("version: v1", "version: v2", "version: 'v2'; 'v1' is understood"),
        ("mig-enabled: false", "mig-enable: false", r"layouts.yaml: .*mig-enable"),
        ("devices: all", "devices: some", "layouts.yaml: .*"),
        ('"1g.10gb": 2', '"1g.10gb": 8', r"mig-configs.mine\[0\]: mig-devices.1g.10gb: 8; a GPU"),
        ('"1g.10gb": 2', '"1g.10gb": -1', "-1; a GPU has 0 to 7"),
        ('"3g.40gb": 1', '"1c.3g.40gb": 1', "name the whole one, 3g.40gb"),
        ("mig-enabled: true\n      mig-dev", "mig-enabled: false\n      mig-dev", "switch it on"),
        ("mig-configs:", "mig-configs", "layouts.yaml: "),
    ],
)
def test_a_malformed_file_is_refused_by_what_is_wrong(was: str, becomes: str, said: str) -> None:
    assert was in FILE
    with pytest.raises(LayoutError, match=said):
        layouts.parse(FILE.replace(was, becomes, 1), source="layouts.yaml")


@pytest.mark.parametrize("card", CARDS)
@pytest.mark.parametrize("reported", [True, False])
def test_built_in_layouts_have_as_many_instances_as_mig_parted_documents(
    card: str, *, reported: bool
) -> None:
    """Also while MIG is off and the driver does not tell places: then its own maxima count."""
    most = CARDS[card][2]
    here = gpu(card) if reported else untold(gpu(card, enabled=False))
    made = builtin.layouts([here])
    got = {p: dict(made[builtin.layout_name(p)][0].counts) for p in most}
    assert got == {profile: {profile: count} for profile, count in most.items()}


@pytest.mark.parametrize(
    ("card", "balanced"),
    [
        ("A100-40", {"1g.5gb": 2, "2g.10gb": 1, "3g.20gb": 1}),
        ("H100-80", {"1g.10gb": 2, "2g.20gb": 1, "3g.40gb": 1}),
        ("H200", {"1g.18gb": 2, "2g.35gb": 1, "3g.71gb": 1}),
        ("A30", {"1g.6gb": 2, "2g.12gb": 1}),
    ],
)
def test_the_balanced_layout_is_mig_parteds(card: str, balanced: dict[str, int]) -> None:
    (rule,) = builtin.layouts([gpu(card)])["all-balanced"]
    assert rule.counts == balanced


@pytest.mark.parametrize("card", CARDS)
def test_the_balanced_layout_is_the_same_before_the_driver_reports_places(card: str) -> None:
    made = builtin.layouts([gpu(card)])
    assert (
        builtin.layouts([untold(gpu(card, enabled=False))])["all-balanced"]
        == (made["all-balanced"])
    )


def unreported(*profiles: tuple[str, int]) -> Gpu:
    """Return a GPU with profiles of which only the greatest numbers are known."""
    kinds = tuple(GpuMigProfile(name, (), 0, most=most) for name, most in profiles)
    return replace(gpu("A30"), mig=GpuMig(enabled=False, profiles=kinds))


def test_a_gpu_of_two_slices_has_no_balanced_layout() -> None:
    """Two of 1g.16gb are the whole GPU, so no 2g.32gb is beside them."""
    made = builtin.layouts([unreported(("1g.16gb", 2), ("2g.32gb", 1))])
    assert sorted(made) == ["all-1g.16gb", "all-2g.32gb", "all-disabled", "all-enabled"]


@given(
    slices=st.sampled_from([2, 4, 7]),
    memory=st.integers(16, 400),
    kinds=st.sets(st.sampled_from([1, 2, 3, 4]), min_size=1),
)
def test_built_in_layouts_fit_whether_or_not_places_are_reported(
    slices: int, memory: int, kinds: set[int]
) -> None:
    """Cards made like NVIDIA's: n compute slices have the next power of two of the memory's."""
    parts = 8 if slices == 7 else slices
    sizes = {n: min(1 << (n - 1).bit_length(), parts) for n in {*kinds, slices} if n <= slices}
    profiles = tuple(
        GpuMigProfile(
            f"{n}g.{round(size * memory / parts)}gb",
            tuple(range(0, parts - size + 1, size))[: slices // n],
            size,
            most=slices // n,
        )
        for n, size in sizes.items()
    )
    hidden = unreported(*((profile.name, profile.most) for profile in profiles))
    told = replace(hidden, mig=GpuMig(enabled=True, profiles=profiles))
    made = builtin.layouts([hidden])
    assert made == builtin.layouts([told])
    for rules in made.values():
        for counts in (rule.counts for rule in rules if rule.counts):
            assert len(place(profiles, counts)) == sum(counts.values())


def test_the_same_name_means_what_each_kind_of_gpu_can_hold() -> None:
    """1g.10gb is an eighth of an H100's memory and a quarter of an A100's of 40 GB."""
    made = builtin.layouts([gpu("H100-80", index=0), gpu("A100-40", index=1)])
    by_gpu = {next(iter(r.devices or ())): dict(r.counts) for r in made["all-1g.10gb"]}
    assert by_gpu == {0: {"1g.10gb": 7}, 1: {"1g.10gb": 4}}


def test_a_node_without_gpus_that_can_be_cut_can_only_be_all_disabled() -> None:
    assert builtin.layouts([replace(gpu("A30"), mig=None)]) == {
        "all-disabled": (LayoutRule(enabled=False),)
    }
