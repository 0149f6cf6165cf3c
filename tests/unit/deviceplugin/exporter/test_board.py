"""What the exporter shows, read back as Prometheus reads it.

::

    GPU-0 (whole)   GPU-1 (cut: MIG-1, MIG-2)   GPU-2 (whole)   mlx5_0
"""

from collections.abc import Iterator
from dataclasses import replace

import pytest
from prometheus_client.parser import text_string_to_metric_families
from support.devices.illness import CUT, OTHER, PORT, SLICES, SOUND, Ward, reading, small_node

from deviceplugin.exporter.board import STALE_S, MetricsBoard
from deviceplugin.health.alerts import Alert
from deviceplugin.model.holdings import ContainerHolding
from deviceplugin.model.inventory import Inventory
from deviceplugin.model.signals import DeviceLost, GpuReading, InstanceReading, NicReading, Xid

FULL = GpuReading(
    SOUND,
    temperature=61,
    slowdown_at=90,
    utilisation=97,
    memory_used=70_000,
    memory_free=10_000,
    memory_reserved=559,
    power=612.347,
    power_limit=700.0,
    sm_clock=1980,
    ecc_corrected=3,
    ecc_uncorrected=1,
    rows_remapped_uncorrectable=2,
    remap_pending=True,
    remap_failed=False,
    recovery_action=1,
)

Samples = dict[str, list[tuple[dict[str, str], float]]]


def shown(board: MetricsBoard, now: float = 0.0) -> Samples:
    """Return the samples by name; this parser calls every counter's "…_total", Prometheus not."""
    found: Samples = {}
    for family in text_string_to_metric_families(board.render(now)):
        for sample in family.samples:
            name = sample.name
            if name.startswith("DCGM"):
                name = name.removesuffix("_total")
            found.setdefault(name, []).append((dict(sample.labels), sample.value))
    return found


def values(board: MetricsBoard, uuid: str, now: float = 0.0) -> dict[str, float]:
    """Return the values of the DCGM series of one whole GPU."""
    return {
        name: value
        for name, samples in shown(board, now).items()
        for labels, value in samples
        if labels.get("UUID") == uuid
    }


@pytest.fixture
def board() -> Iterator[MetricsBoard]:
    made = MetricsBoard("n1")
    made.see(small_node())
    made.read([FULL, NicReading(PORT, ((1, True),))], 0.0)
    yield made
    assert made.render(0.0).endswith("\n")


def test_readings_are_shown_in_dcgms_names_and_units(board: MetricsBoard) -> None:
    assert values(board, SOUND) == {
        "DCGM_FI_DEV_SM_CLOCK": 1980,
        "DCGM_FI_DEV_GPU_TEMP": 61,
        "DCGM_FI_DEV_SLOWDOWN_TEMP": 90,
        "DCGM_FI_DEV_POWER_USAGE": 612.347,
        "DCGM_FI_DEV_POWER_MGMT_LIMIT": 700,
        "DCGM_FI_DEV_GPU_UTIL": 97,
        "DCGM_FI_DEV_FB_FREE": 10_000,
        "DCGM_FI_DEV_FB_USED": 70_000,
        "DCGM_FI_DEV_FB_RESERVED": 559,
        "DCGM_FI_DEV_ECC_SBE_AGG_TOTAL": 3,
        "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL": 1,
        "DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS": 2,
        "DCGM_FI_DEV_ROW_REMAP_PENDING": 1,
        "DCGM_FI_DEV_ROW_REMAP_FAILURE": 0,
        "DCGM_FI_DEV_GET_GPU_RECOVERY_ACTION": 1,
        "DCGM_FI_DEV_XID_ERRORS": 0,
    }


def test_series_have_the_labels_of_dcgm_exporter(board: MetricsBoard) -> None:
    labels, _ = shown(board)["DCGM_FI_DEV_GPU_TEMP"][0]
    assert labels == {
        "gpu": "0",
        "UUID": SOUND,
        "pci_bus_id": "00000000:10:00.0",
        "device": "nvidia0",
        "modelName": "NVIDIA A100-SXM4-40GB",
        "Hostname": "n1",
        "DCGM_FI_DRIVER_VERSION": "535.161.08",
    }


def test_what_the_driver_does_not_report_is_no_zero(board: MetricsBoard) -> None:
    board.read([GpuReading(SOUND, temperature=50)], 1.0)
    assert values(board, SOUND, 1.0) == {"DCGM_FI_DEV_GPU_TEMP": 50, "DCGM_FI_DEV_XID_ERRORS": 0}


def test_readings_of_a_gpu_that_hangs_go_away(board: MetricsBoard) -> None:
    assert "DCGM_FI_DEV_GPU_TEMP" in shown(board, STALE_S)
    assert "DCGM_FI_DEV_GPU_TEMP" not in shown(board, STALE_S + 1)


def test_a_gpu_that_is_gone_is_not_shown(board: MetricsBoard) -> None:
    board.count(Xid(SOUND, 79))
    board.see(Inventory())
    assert not shown(board)
    board.see(small_node())
    assert values(board, SOUND) == {"DCGM_FI_DEV_XID_ERRORS": 0}


def test_a_gpu_that_a_pod_has_names_it(board: MetricsBoard) -> None:
    board.hold([ContainerHolding("team", "train-0", "main", {"nvidia.com/gpu": (SOUND,)})])
    for name, samples in shown(board).items():
        for labels, _ in samples:
            pod = (labels.get("namespace"), labels.get("pod"), labels.get("container"))
            has_it = labels["UUID"] == SOUND
            assert pod == (("team", "train-0", "main") if has_it else (None,) * 3), name
    board.hold([])
    assert "train-0" not in board.render(0)


def test_a_shared_gpu_has_a_series_for_each_replica_that_is_given_away(board: MetricsBoard) -> None:
    board.hold(
        [
            ContainerHolding(
                "a", "p", "c", {"nvidia.com/gpu.shared": (f"{SOUND}::0", f"{SOUND}::2")}
            ),
            ContainerHolding("b", "q", "c", {"nvidia.com/gpu.shared": (f"{SOUND}::mem1",)}),
        ]
    )
    temperatures = shown(board)["DCGM_FI_DEV_GPU_TEMP"]
    assert [(each["pod"], each["vgpu"]) for each, _ in temperatures] == [
        ("p", "0"),
        ("p", "2"),
        ("q", "mem1"),
    ]


def test_a_gpu_that_is_cut_has_series_for_its_instances(board: MetricsBoard) -> None:
    memory = InstanceReading(SLICES[0], memory_used=100, memory_free=4764)
    board.read([replace(FULL, uuid=CUT, instances=(memory,))], 0.0)
    board.hold([ContainerHolding("team", "infer", "c", {"nvidia.com/mig-1g.5gb": (SLICES[1],)})])
    found = shown(board)
    power = [e for e in found["DCGM_FI_DEV_POWER_USAGE"] if e[0]["UUID"] == CUT]
    assert [(e["GPU_I_PROFILE"], e["GPU_I_ID"], e.get("pod")) for e, _ in power] == [
        ("1g.5gb", "1", None),
        ("1g.5gb", "2", "infer"),
    ]
    used = [e for e in found["DCGM_FI_DEV_FB_USED"] if e[0]["UUID"] == CUT]
    assert [(e["GPU_I_ID"], value) for e, value in used] == [("1", 100)]  # of 2 nobody told


def test_xids_are_shown_as_the_last_code_and_counted_by_code(board: MetricsBoard) -> None:
    for code in (31, 31, 79):
        board.count(Xid(OTHER, code))
    found = shown(board)
    last = {e["UUID"]: value for e, value in found["DCGM_FI_DEV_XID_ERRORS"]}
    assert last == {SOUND: 0, CUT: 0, OTHER: 79}
    counted = {(e["device"], e["xid"]): n for e, n in found["muster_device_xids_total"]}
    assert counted == {(OTHER, "31"): 2, (OTHER, "79"): 1}


def test_states_and_alerts_of_every_device_are_shown(board: MetricsBoard) -> None:
    ward = Ward()
    ward.hear(DeviceLost(OTHER, "gone"))
    board.judge(ward.monitor.standings(), frozenset({(SOUND, Alert.IDLE)}))
    found = shown(board)
    now = {
        e["device"]: (e["kind"], e["state"]) for e, on in found["muster_device_state"] if on == 1
    }
    assert now == {
        SOUND: ("GPU", "Healthy"),
        CUT: ("GPU", "Healthy"),
        SLICES[0]: ("MIG instance", "Healthy"),
        SLICES[1]: ("MIG instance", "Healthy"),
        OTHER: ("GPU", "Unhealthy"),
        PORT: ("NIC", "Healthy"),
    }
    assert len(found["muster_device_state"]) == 4 * len(now)
    on = [(e["device"], e["alert"]) for e, value in found["muster_device_alert"] if value]
    assert on == [(SOUND, "LowUtilisation")]
    assert len(found["muster_device_alert"]) == 3 * 3


def test_names_with_quotes_and_line_breaks_do_not_break_the_format() -> None:
    board = MetricsBoard('a "host"\\with\nall')
    inventory = small_node()
    board.see(inventory)
    board.read([reading()], 0)
    labels, _ = shown(board)["DCGM_FI_DEV_GPU_TEMP"][0]
    assert labels["Hostname"] == 'a "host"\\with\nall'


def test_each_metric_comes_once_with_its_help_and_type(board: MetricsBoard) -> None:
    board.read([replace(FULL, uuid=uuid) for uuid in (SOUND, CUT, OTHER)], 0.0)
    lines = board.render(0.0).splitlines()
    types = [line.split()[2] for line in lines if line.startswith("# TYPE")]
    assert len(types) == len(set(types)) == 16
    assert len(lines) == 2 * 16 + 13 * 4 + 3 * 2  # memory of instances is not known
