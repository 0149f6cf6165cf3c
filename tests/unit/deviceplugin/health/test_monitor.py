"""What makes a device unwell, and for how long, with the thresholds that docs give.

::

    GPU-0 (whole)   GPU-1 (cut: MIG-1, MIG-2)   GPU-2 (whole)   mlx5_0
"""

from dataclasses import replace

import pytest
from support.devices.gpunodes import gpu, nic, node
from support.devices.illness import CUT, OTHER, PORT, SLICES, SOUND, Ward, reading, small_node

from deviceplugin.health.config import HealthConfig, TemperatureLimits
from deviceplugin.health.monitor import Monitor
from deviceplugin.health.reports import condition, event, ill
from deviceplugin.health.states import HealthState
from deviceplugin.model.inventory import FabricState, Inventory, NvlinkFabric, Vendor
from deviceplugin.model.signals import (
    BackendDown,
    BackendUp,
    DeviceLost,
    GpuReading,
    NicReading,
    Xid,
)

HEALTHY, SUSPECT = HealthState.HEALTHY, HealthState.SUSPECT
UNHEALTHY, RECOVERING = HealthState.UNHEALTHY, HealthState.RECOVERING
ALL = (SOUND, CUT, *SLICES, OTHER, PORT)


def test_devices_that_answer_well_are_healthy_and_nothing_is_reported() -> None:
    ward = Ward()
    ward.pass_time(3600)
    assert {ward.state(device) for device in ALL} == {HEALTHY}
    assert not ward.changes


@pytest.mark.parametrize(
    ("illness", "reason"),
    [
        ({"recovery_action": 1}, "RecoveryActionDue"),
        ({"remap_failed": True}, "RowRemapFailed"),
        ({"links_down": 2}, "NvLinkDown"),
        ({"temperature": 90}, "Overheated"),
        ({"ecc_uncorrected": 1}, "UncorrectableEcc"),
    ],
)
def test_one_reading_is_enough_for_what_is_fatal(illness: dict[str, object], reason: str) -> None:
    ward = Ward()
    ward.falls_ill(**illness)
    assert (ward.state(), ward.reasons()) == (UNHEALTHY, [reason])
    assert ward.state(OTHER) is HEALTHY


@pytest.mark.parametrize(
    ("illness", "reason"),
    [
        ({"remap_pending": True}, "RowRemapPending"),
        ({"temperature": 85}, "Hot"),
        ({"ecc_corrected": 100}, "CorrectableEccGrowth"),
    ],
)
def test_what_only_is_suspected_never_takes_a_device_away_at_once(
    illness: dict[str, object], reason: str
) -> None:
    ward = Ward()
    ward.falls_ill(**illness)
    assert (ward.state(), ward.reasons()) == (SUSPECT, [reason])
    assert ward.state().usable


def test_the_growth_of_corrected_errors_stays_a_suspicion_and_ends_with_the_window() -> None:
    ward = Ward()
    for count in range(0, 100_000, 500):
        ward.falls_ill(ecc_corrected=count)
        ward.pass_time(5)
        assert ward.state() in {HEALTHY, SUSPECT}
    assert ward.state() is SUSPECT
    ward.pass_time(3600 + 60 + 5)
    assert ward.state() is HEALTHY


def test_a_few_corrected_errors_are_nothing() -> None:
    ward = Ward()
    ward.falls_ill(ecc_corrected=99)
    assert ward.state() is HEALTHY


def test_errors_of_the_gpus_whole_life_before_this_process_are_no_growth() -> None:
    monitor = Monitor(Ward().config)
    monitor.see(small_node(), 0)
    monitor.read([reading(ecc_corrected=50_000)], 0)
    assert monitor.state(SOUND) is HEALTHY


def test_a_gpu_that_stays_hot_is_taken_away_after_half_a_minute() -> None:
    ward = Ward()
    ward.falls_ill(temperature=86)
    ward.pass_time(29)
    assert ward.state() is SUSPECT
    ward.pass_time(1)
    assert (ward.state(), ward.reasons()) == (UNHEALTHY, ["Overheated"])


def test_heat_has_hysteresis() -> None:
    ward = Ward()
    ward.falls_ill(temperature=90)
    ward.falls_ill(temperature=81)
    ward.pass_time(600)
    assert ward.state() is UNHEALTHY  # 5 below 85 is not reached
    ward.falls_ill(temperature=80)
    assert ward.state() is RECOVERING


def test_the_limit_is_below_where_the_gpu_slows_itself_down() -> None:
    ward = Ward()
    ward.falls_ill(temperature=78, slowdown_at=80)
    assert ward.state() is SUSPECT


def test_the_hottest_spot_that_amd_reports_has_its_own_limit() -> None:
    monitor = Monitor(HealthConfig())
    monitor.see(node(gpu(0, vendor=Vendor.AMD)), 0)
    monitor.read([reading(temperature=97, slowdown_at=100)], 0)
    assert monitor.state(SOUND) is HEALTHY
    monitor.read([reading(temperature=98, slowdown_at=100)], 1)
    assert monitor.state(SOUND) is SUSPECT


def test_without_a_limit_only_the_gpus_own_slowdown_counts() -> None:
    ward = Ward(HealthConfig(temperature=TemperatureLimits(limit_celsius=None)))
    ward.falls_ill(temperature=95, slowdown_at=105)
    ward.pass_time(60)
    assert ward.state() is HEALTHY
    ward.falls_ill(temperature=103, slowdown_at=105)
    assert ward.state() is SUSPECT
    ward.falls_ill(temperature=200, slowdown_at=None)
    assert not ward.reasons()


def test_a_gpu_that_does_not_report_its_temperature_is_not_hot() -> None:
    ward = Ward()
    ward.falls_ill(temperature=95, slowdown_at=None)
    ward.falls_ill(temperature=None, slowdown_at=None)
    ward.pass_time(600)
    assert ward.state() is HEALTHY


def test_it_comes_back_when_it_was_well_for_the_hold_and_not_before() -> None:
    ward = Ward()
    ward.falls_ill(links_down=1)
    ward.is_well_again()
    assert ward.state() is RECOVERING
    ward.pass_time(29)
    assert ward.state() is RECOVERING
    ward.pass_time(1)
    assert ward.state() is HEALTHY
    assert [change.state for change in ward.changes] == [UNHEALTHY, RECOVERING, HEALTHY]


def test_time_alone_heals_nothing_that_does_not_answer() -> None:
    ward = Ward()
    ward.falls_ill(links_down=1)
    ward.is_well_again()
    ward.monitor.tick(ward.now + 10_000)
    assert ward.state() is RECOVERING


def test_a_device_that_flaps_is_held_twice_as_long_each_time_up_to_the_maximum() -> None:
    ward = Ward()
    holds = []
    for _ in range(9):
        ward.falls_ill(links_down=1)
        ward.is_well_again()
        start = ward.now
        while ward.state() is not HEALTHY:
            ward.pass_time(10)
        holds.append(ward.now - start)
    assert holds == [30, 60, 120, 240, 480, 960, 1800, 1800, 1800]


def test_after_a_quiet_hour_the_first_hold_is_enough_again() -> None:
    ward = Ward()
    for _ in range(3):
        ward.falls_ill(links_down=1)
        ward.is_well_again()
        ward.pass_time(500)
    ward.pass_time(3600)
    ward.falls_ill(links_down=1)
    ward.is_well_again()
    ward.pass_time(30)
    assert ward.state() is HEALTHY


def test_a_suspicion_that_is_left_after_the_hold_is_reported() -> None:
    ward = Ward()
    ward.falls_ill(recovery_action=1, remap_pending=True)
    ward.falls_ill(remap_pending=True)
    ward.pass_time(30)
    assert (ward.state(), ward.reasons()) == (SUSPECT, ["RowRemapPending"])


def test_links_of_a_gpu_that_is_cut_matter_to_no_pod() -> None:
    ward = Ward()
    ward.sick[CUT] = reading(CUT, links_down=4)
    ward.read()
    assert ward.state(CUT) is HEALTHY


@pytest.mark.parametrize("state", [FabricState.NOT_STARTED, FabricState.IN_PROGRESS])
def test_a_gpu_is_not_given_out_before_its_fabric_stands(state: FabricState) -> None:
    ward = Ward()
    joining = node(gpu(0, fabric=NvlinkFabric(state)))
    assert [c.state for c in ward.monitor.see(joining, 0)] == [UNHEALTHY]
    ward.monitor.see(node(gpu(0, fabric=NvlinkFabric(FabricState.COMPLETED))), 10)
    assert ward.state() is RECOVERING


def test_a_fabric_that_is_unwell_makes_its_gpus_suspect() -> None:
    ward = Ward()
    ward.monitor.see(node(gpu(0, fabric=NvlinkFabric(FabricState.COMPLETED, healthy=False))), 0)
    assert (ward.state(), ward.reasons()) == (SUSPECT, ["FabricUnhealthy"])


def test_a_gpu_that_does_not_answer_is_out_until_it_does() -> None:
    ward = Ward()
    ward.hear(DeviceLost(SOUND, "GPU is lost"))
    ward.sick[SOUND] = GpuReading(SOUND)  # in the readings, and says nothing
    ward.pass_time(600)
    assert (ward.state(), ward.reasons()) == (UNHEALTHY, ["DeviceLost"])
    ward.is_well_again()
    ward.pass_time(30)
    assert ward.state() is HEALTHY


def test_what_is_reported_of_a_device_before_the_inventory_has_it_is_not_lost() -> None:
    monitor = Monitor(Ward().config)
    monitor.apply(DeviceLost(SOUND, "GPU is lost"), 0)
    monitor.apply(Xid(OTHER, 79), 0)
    monitor.see(small_node(), 1)
    assert [monitor.state(each) for each in (SOUND, CUT, OTHER)] == [UNHEALTHY, HEALTHY, UNHEALTHY]


def test_what_was_reported_of_a_device_that_did_not_come_is_forgotten() -> None:
    monitor = Monitor(Ward().config)
    monitor.apply(Xid(SOUND, 79), 0)
    monitor.see(node(gpu(2)), 1)
    monitor.see(small_node(), 2)
    assert monitor.state(SOUND) is HEALTHY


def test_a_signal_of_a_device_that_nobody_knows_changes_nothing() -> None:
    ward = Ward()
    ward.hear(DeviceLost("GPU-x", "gone"))
    ward.hear(Xid("GPU-x", 79))
    ward.monitor.read([reading("GPU-x", links_down=1), NicReading("mlx5_9")], 0)
    assert not ward.changes
    assert ward.state("GPU-x") is UNHEALTHY  # and nobody is given it


def test_a_nic_without_any_port_is_out_and_one_that_lost_a_port_is_suspect() -> None:
    ward = Ward()
    ward.sick[PORT] = NicReading(PORT, ((1, True), (2, False)))
    ward.read()
    assert ward.state(PORT) is HEALTHY  # port 2 never was up: no cable
    ward.sick[PORT] = NicReading(PORT, ((1, True), (2, True)))
    ward.read()
    ward.sick[PORT] = NicReading(PORT, ((1, True), (2, False)))
    ward.read()
    assert (ward.state(PORT), ward.reasons(PORT)) == (SUSPECT, ["PortDown"])
    ward.sick[PORT] = NicReading(PORT, ((1, False), (2, False)))
    ward.read()
    assert (ward.state(PORT), ward.reasons(PORT)) == (UNHEALTHY, ["PortsDown"])


def test_a_nic_is_judged_by_the_inventory_before_it_is_read() -> None:
    dead = replace(nic(0, 0), ports=tuple(replace(p, active=False) for p in nic(0, 0).ports))
    monitor = Monitor(Ward().config)
    assert [c.state for c in monitor.see(node(nics=(dead,)), 0)] == [UNHEALTHY]


def test_a_backend_that_is_down_takes_its_own_devices_before_anybody_is_given_one() -> None:
    ward = Ward()
    owners = {SOUND: "nvml", CUT: "nvml", OTHER: "nvml", PORT: "rdma"}
    ward.monitor.see(small_node(), 0, owners)
    ward.hear(BackendDown("nvml", "no heartbeat"))
    assert {ward.state(device) for device in ALL if device != PORT} == {UNHEALTHY}
    assert ward.state(PORT) is HEALTHY
    ward.hear(BackendUp("nvml"))
    ward.pass_time(30)
    assert {ward.state(device) for device in ALL} == {HEALTHY}


@pytest.mark.parametrize(
    ("backend", "left"), [("nvml", {PORT}), ("rdma", {*ALL} - {PORT}), ("simulated", set())]
)
def test_a_backend_takes_what_it_usually_answers_for(backend: str, left: set[str]) -> None:
    ward = Ward()
    ward.hear(BackendDown(backend, "no heartbeat"))
    assert {device for device in ALL if ward.state(device).usable} == left


def test_a_device_that_comes_back_to_a_backend_that_is_down_is_out_at_once() -> None:
    ward = Ward()
    ward.monitor.see(Inventory(), 0)
    ward.hear(BackendDown("nvml", "hangs"))
    assert [c.state for c in ward.monitor.see(node(gpu(0)), 1)] == [UNHEALTHY]


def test_a_gpu_that_was_pulled_and_put_back_is_watched_before_it_is_given_out() -> None:
    ward = Ward()
    ward.hear(Xid(SOUND, 79))
    ward.monitor.see(node(gpu(2)), 10)
    assert ward.state() is UNHEALTHY
    ward.monitor.see(small_node(), 20)
    assert ward.state() is RECOVERING


def test_time_that_goes_backwards_does_no_harm() -> None:
    ward = Ward()
    ward.falls_ill(links_down=1)
    ward.monitor.read([reading()], -1000)
    assert ward.state() is RECOVERING
    ward.monitor.read([reading()], 29)
    assert ward.state() is RECOVERING
    ward.monitor.read([reading()], 30)
    assert ward.state() is HEALTHY


def test_events_and_the_condition_say_what_is_wrong_with_which_device() -> None:
    ward = Ward()
    assert condition(ward.monitor.standings()).reason == "AllDevicesHealthy"
    ward.hear(Xid(SOUND, 79))
    ward.hear(Xid(OTHER, 74))
    reported = [event(change) for change in ward.changes]
    assert [(each.warning, each.reason) for each in reported] == [
        (True, "DeviceUnhealthy"),
        (False, "DeviceSuspect"),
    ]
    assert reported[0].note == f"GPU {SOUND}: Xid (79: has fallen off the bus)"
    found = condition(ward.monitor.standings())
    assert (found.healthy, found.reason) == (False, "DevicesUnusable")
    assert found.message == f"1 of 6 devices: GPU {SOUND} Unhealthy (Xid)"
    assert ill(ward.monitor.standings()) == {SOUND: "Xid (79: has fallen off the bus)"}


def test_a_node_of_which_nothing_is_known_is_not_called_healthy() -> None:
    assert condition(()).healthy is None


def test_a_condition_names_no_more_devices_than_can_be_read() -> None:
    monitor = Monitor(Ward().config)
    monitor.see(node(*(gpu(index) for index in range(64))), 0)
    monitor.apply(BackendDown("nvml", "hangs"), 0)
    message = condition(monitor.standings()).message
    assert message.startswith("64 of 64 devices: ")
    assert message.endswith("; and 56 more")
    assert len(message) < 1024
