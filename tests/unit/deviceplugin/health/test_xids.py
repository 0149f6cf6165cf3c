"""Xid errors: what the catalogue asks for, what an operator says instead, and when it is over."""

from pathlib import Path

import pytest
from support.devices.illness import CUT, OTHER, SLICES, SOUND, Ward, reading, small_node
from support.machine import quickyaml

from deviceplugin.health import xids
from deviceplugin.health.config import HealthConfig, Xids
from deviceplugin.health.monitor import Monitor
from deviceplugin.health.states import HealthState
from deviceplugin.health.xids import Effect, XidAction
from deviceplugin.model.signals import Xid

HEALTHY, SUSPECT = HealthState.HEALTHY, HealthState.SUSPECT
UNHEALTHY, RECOVERING = HealthState.UNHEALTHY, HealthState.RECOVERING

RESET = (46, 62, 64, 95, 109, 110, 119, 120, 136, 140, 143, 155, 156, 158)
PROGRAMS = (8, 11, 13, 25, 31, 32, 39, 60, 68, 80, 94, 105, 126, 135, 139)
IGNORED = (37, 38, 43, 44, 63, 66, 67, 92, 93, 106, 107, 121, 137, 141, 160, 161)


@pytest.mark.parametrize("code", [*RESET, 48, 79, 151])
def test_what_needs_a_reset_or_a_reboot_takes_the_gpu_away(code: int) -> None:
    ward = Ward()
    ward.hear(Xid(SOUND, code))
    assert (ward.state(), ward.reasons()) == (UNHEALTHY, ["Xid"])


@pytest.mark.parametrize("code", [*PROGRAMS, *IGNORED])
def test_faults_of_programs_and_what_is_to_be_ignored_leave_it(code: int) -> None:
    ward = Ward()
    ward.hear(Xid(SOUND, code))
    assert ward.state() is HEALTHY


@pytest.mark.parametrize("code", [45, 74, 144, 150, 999])
def test_what_is_to_be_looked_into_and_what_nobody_knows_makes_it_suspect(code: int) -> None:
    ward = Ward()
    ward.hear(Xid(SOUND, code))
    assert (ward.state(), ward.reasons()) == (SUSPECT, ["XidToLookInto"])
    ward.pass_time(599)
    assert ward.state() is SUSPECT
    ward.pass_time(60 + 5)
    assert ward.state() is HEALTHY


def test_each_code_of_the_table_stands_in_one_group() -> None:
    table = xids.load({})
    shipped = quickyaml.load(Path(xids.__file__).with_name("xids.yaml").read_text())
    assert list(shipped) == list(XidAction)
    codes = [code for group in shipped.values() for code in group["codes"]]
    assert len(codes) == len(set(codes)) == len(table.actions)
    assert set(table.means) <= set(table.actions)


def test_it_is_over_when_the_driver_has_asked_for_nothing_for_a_while() -> None:
    ward = Ward()
    ward.hear(Xid(SOUND, 119))
    ward.falls_ill(recovery_action=1)
    ward.pass_time(7200)
    assert ward.state() is UNHEALTHY
    assert ward.reasons() == ["RecoveryActionDue", "Xid"]
    ward.is_well_again()
    ward.pass_time(29)
    assert ward.state() is UNHEALTHY
    ward.pass_time(1)
    assert ward.state() is RECOVERING
    ward.pass_time(30)
    assert ward.state() is HEALTHY


def test_a_reset_that_the_counters_show_ends_it_at_once() -> None:
    ward = Ward()
    ward.falls_ill(ecc_uncorrected=3, recovery_action=None)
    ward.hear(Xid(SOUND, 48))
    assert ward.reasons() == ["UncorrectableEcc", "Xid"]
    ward.falls_ill(ecc_uncorrected=0, recovery_action=None)
    assert (ward.state(), ward.reasons()) == (RECOVERING, [])


def test_with_a_driver_that_cannot_say_so_it_is_over_after_a_quiet_hour() -> None:
    ward = Ward()
    ward.falls_ill(recovery_action=None)
    ward.hear(Xid(SOUND, 62))
    ward.pass_time(3000)
    ward.hear(Xid(SOUND, 62))
    ward.pass_time(3599)
    assert ward.state() is UNHEALTHY
    ward.pass_time(1)
    assert ward.state() is RECOVERING


@pytest.mark.parametrize(("action", "state"), [(0, HEALTHY), (None, UNHEALTHY), (1, UNHEALTHY)])
def test_old_uncorrectable_errors_count_unless_the_driver_says_that_they_do_not(
    action: int | None, state: HealthState
) -> None:
    monitor = Monitor(HealthConfig())
    monitor.see(small_node(), 0)
    monitor.read([reading(ecc_uncorrected=7, recovery_action=action)], 0)
    assert monitor.state(SOUND) is state


def test_new_uncorrectable_errors_count_even_if_the_driver_says_nothing_yet() -> None:
    ward = Ward()
    ward.falls_ill(ecc_uncorrected=7, recovery_action=0)
    assert (ward.state(), ward.reasons()) == (UNHEALTHY, ["UncorrectableEcc"])
    ward.pass_time(30 + 30)
    assert ward.state() is HEALTHY
    ward.pass_time(3600)
    assert ward.state() is HEALTHY


def test_an_operator_may_say_what_a_code_means_here() -> None:
    config = HealthConfig(xids=Xids(ignore=(119, 999), effects={94: Effect.UNHEALTHY}))
    ward = Ward(config)
    ward.hear(Xid(SOUND, 119))
    ward.hear(Xid(SOUND, 999))
    assert ward.state() is HEALTHY
    ward.hear(Xid(SOUND, 94))
    assert ward.state() is UNHEALTHY


def test_an_error_of_the_gpu_is_every_instances_and_no_other_gpus() -> None:
    ward = Ward()
    ward.hear(Xid(CUT, 95, gpu_instance=1, compute_instance=0))  # a reset resets all of it
    assert {ward.state(device) for device in (CUT, *SLICES)} == {UNHEALTHY}
    assert ward.state(f"{SLICES[1]}::4") is UNHEALTHY
    assert ward.state(OTHER) is HEALTHY
    assert [change.device for change in ward.changes] == [CUT, *SLICES]


def test_an_error_that_is_confined_takes_only_the_instance_that_it_names() -> None:
    ward = Ward(HealthConfig(xids=Xids(effects={94: Effect.UNHEALTHY})))
    ward.hear(Xid(CUT, 94, gpu_instance=2, compute_instance=0))
    assert [ward.state(device) for device in (CUT, *SLICES)] == [HEALTHY, HEALTHY, UNHEALTHY]
    ward.pass_time(60)
    assert ward.state(SLICES[1]) is HEALTHY


def test_a_confined_error_that_names_no_instance_there_is_takes_the_whole_gpu() -> None:
    ward = Ward(HealthConfig(xids=Xids(effects={94: Effect.UNHEALTHY})))
    ward.hear(Xid(CUT, 94, gpu_instance=9, compute_instance=0))
    assert {ward.state(device) for device in (CUT, *SLICES)} == {UNHEALTHY}


def test_replicas_are_as_well_as_their_gpu() -> None:
    ward = Ward()
    ward.sick[SOUND] = reading(links_down=1)
    ward.read()
    assert [ward.state(f"{SOUND}::{n}") for n in range(3)] == [UNHEALTHY] * 3
    assert ward.state(f"{SOUND}::mem5") is UNHEALTHY
