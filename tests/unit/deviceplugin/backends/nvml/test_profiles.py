"""Names of MIG profiles, against those that NVIDIA documents for each card."""

import pytest

from deviceplugin.backends.nvml.profiles import gigabytes, instance_name, profile_name

MIB = 1024**2


# Memory of the card in MiB as NVML tells it, and of its instances as `nvidia-smi mig -lgip` prints
# them in GiB; names from docs.nvidia.com/datacenter/tesla/mig-user-guide.
@pytest.mark.parametrize(
    ("card_mib", "instance_gib", "gb"),
    [
        (40960, 4.75, 5),  # A100 40 GB: 1g.5gb
        (40960, 9.75, 10),
        (40960, 19.62, 20),
        (81559, 9.62, 10),  # H100 80 GB: 1g.10gb
        (81559, 19.62, 20),
        (81559, 79.25, 80),
        (143771, 16.00, 18),  # H200: 1g.18gb
        (143771, 32.50, 35),
        (143771, 69.75, 71),  # 70.5: a half is rounded up, not to the even number
        (143771, 140.00, 141),
        (183359, 20.75, 23),  # B200: 22.5
        (183359, 178.00, 180),
        (24576, 5.81, 6),  # A30
        (97887, 23.62, 24),  # RTX PRO 6000, cut in four
    ],
)
def test_memory_is_named_as_a_share_of_the_card_in_eighths(
    card_mib: int, instance_gib: float, gb: int
) -> None:
    assert gigabytes(int(instance_gib * 1024), card_mib * MIB) == gb


@pytest.mark.parametrize(
    ("kind", "slices", "name"),
    [
        (0x0, 1, "1g.10gb"),
        (0x7, 1, "1g.10gb+me"),
        (0x9, 1, "1g.10gb"),
        (0xA, 1, "1g.10gb+gfx"),
        (0xD, 1, "1g.10gb-me"),
        (0xF, 1, "1g.10gb+me.all"),
        (0x20, 5, "5g.55gb+new"),  # unknown kind: as the driver calls it
    ],
)
def test_what_is_special_about_a_profile_is_in_its_name(kind: int, slices: int, name: str) -> None:
    assert profile_name(kind, slices, 9856, 81559 * MIB, "MIG 5g.55gb+new") == name


def test_a_part_of_a_gpu_instance_is_named_as_one() -> None:
    assert instance_name("3g.40gb", 3, 3) == "3g.40gb"
    assert instance_name("3g.40gb", 3, 1) == "1c.3g.40gb"


def test_a_card_that_tells_no_memory_has_profiles_all_the_same() -> None:
    assert profile_name(0, 1, 9856, 0, "") == "1g.0gb"
