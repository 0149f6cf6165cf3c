"""Alerts: full memory, power at its limit, low utilisation. None of them is an illness."""

import pytest
from support.devices.illness import SOUND, Ward, reading

from deviceplugin.health.alerts import Alert, Alerts, event
from deviceplugin.health.config import AlertThresholds
from deviceplugin.health.reports import Event
from deviceplugin.health.states import HealthState
from deviceplugin.model.signals import GpuReading, NicReading

HELD = {SOUND}


def raised(alerts: Alerts, now: float, held: set[str] = HELD, **changes: object) -> list[Alert]:
    """Return the alerts that this reading raises."""
    found = alerts.read([reading(**changes), NicReading("mlx5_0")], held, now)
    return [change.alert for change in found if change.raised]


@pytest.fixture
def alerts() -> Alerts:
    return Alerts(AlertThresholds())


def test_memory_is_full_above_90_percent_of_what_programs_can_have(alerts: Alerts) -> None:
    assert not raised(alerts, 0, memory_used=900, memory_free=100, memory_reserved=500)
    assert raised(alerts, 1, memory_used=901, memory_free=99) == [Alert.MEMORY_FULL]


def test_power_is_near_its_limit_above_95_percent(alerts: Alerts) -> None:
    assert not raised(alerts, 0, power=380.0, power_limit=400.0)
    assert raised(alerts, 1, power=381.0, power_limit=400.0) == [Alert.POWER_LIMIT]


def test_utilisation_is_low_below_30_percent_for_ten_minutes(alerts: Alerts) -> None:
    assert not raised(alerts, 0, utilisation=29)
    assert not raised(alerts, 599, utilisation=0)
    assert raised(alerts, 600, utilisation=29) == [Alert.IDLE]


def test_an_alert_is_reported_as_an_event_when_it_begins_and_when_it_ends(alerts: Alerts) -> None:
    (begun,) = alerts.read([reading(power=400.0)], (), 0)
    (ended,) = alerts.read([reading(power=100.0)], (), 1)
    assert event(begun) == Event(True, "PowerNearLimit", f"GPU {SOUND}: 100 %, alert above 95 %")
    assert event(ended) == Event(
        False, "PowerNearLimit", f"GPU {SOUND}: is over: 25 %, alert above 95 %"
    )


def test_a_busy_moment_starts_the_ten_minutes_anew(alerts: Alerts) -> None:
    raised(alerts, 0, utilisation=10)
    raised(alerts, 300, utilisation=30)
    raised(alerts, 305, utilisation=10)
    assert not raised(alerts, 900, utilisation=10)
    assert raised(alerts, 905, utilisation=10) == [Alert.IDLE]


def test_a_gpu_that_no_pod_has_may_be_idle_for_ever(alerts: Alerts) -> None:
    for now in range(0, 7200, 60):
        assert not raised(alerts, now, held=set(), utilisation=0)
    assert not raised(alerts, 7200, utilisation=0)  # given to a pod: its ten minutes begin
    assert raised(alerts, 7800, utilisation=0) == [Alert.IDLE]


def test_an_alert_ends_when_the_pod_is_gone(alerts: Alerts) -> None:
    raised(alerts, 0, utilisation=0)
    raised(alerts, 600, utilisation=0)
    (ended,) = alerts.read([reading(utilisation=0)], (), 601)
    assert (ended.alert, ended.raised) == (Alert.IDLE, False)
    assert not alerts.standing()


def test_an_alert_is_reported_once_and_has_hysteresis(alerts: Alerts) -> None:
    assert raised(alerts, 0, power=390.0) == [Alert.POWER_LIMIT]
    for now in range(1, 50):
        assert not alerts.read([reading(power=380.0 + now % 3)], HELD, now)  # 95 % and about
    (ended,) = alerts.read([reading(power=372.0)], HELD, 50)  # 93 %
    assert not ended.raised
    assert ended.figure == "93 %, alert above 95 %"


@pytest.mark.parametrize(
    "silent", [{"memory_used": None}, {"memory_free": None}, {"power_limit": 0.0}, {"power": None}]
)
def test_what_the_driver_does_not_report_alerts_nobody(
    alerts: Alerts, silent: dict[str, object]
) -> None:
    full = {"memory_used": 999, "memory_free": 1, "power": 400.0} | silent
    assert len(raised(alerts, 0, **full)) == 1


def test_a_gpu_that_answers_nothing_any_more_ends_its_alerts(alerts: Alerts) -> None:
    raised(alerts, 0, power=400.0)
    assert [c.raised for c in alerts.read([GpuReading(SOUND)], HELD, 1)] == [False]


def test_alerts_of_devices_that_are_gone_are_forgotten(alerts: Alerts) -> None:
    raised(alerts, 0, power=400.0)
    alerts.keep({"GPU-other"})
    assert not alerts.standing()


def test_no_alert_touches_the_health_of_a_device() -> None:
    ward = Ward()
    ward.falls_ill(memory_used=1000, memory_free=0, power=500.0, utilisation=0)
    ward.pass_time(3600)
    assert ward.state() is HealthState.HEALTHY
    assert not ward.changes
