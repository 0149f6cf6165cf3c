"""The section ``health``: strict, and wrong in words that say what to mend."""

from collections.abc import Iterable

import msgspec
import pytest

from deviceplugin.health.config import HealthConfig, problems
from deviceplugin.health.xids import Effect
from muster.observability import configfile


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    health: HealthConfig = HealthConfig()


def parse(text: str) -> HealthConfig:
    def found(file: _File) -> Iterable[str]:
        return problems(file.health)

    return configfile.parse(text.encode(), _File, found, source="c.yaml").health


def test_the_defaults_are_those_of_the_documentation() -> None:
    config = parse("{}")
    assert config.temperature.limit_celsius == 85
    alerts = config.alerts
    assert (alerts.memory_percent, alerts.power_percent) == (90, 95)
    assert (alerts.idle_percent, alerts.idle_seconds) == (30, 600)
    assert not list(problems(config))


def test_codes_may_be_ignored_or_given_an_effect() -> None:
    config = parse("health: {xids: {ignore: [31], effects: {94: unhealthy, 74: suspect}}}")
    assert config.xids.overrides() == {
        31: Effect.NONE,
        94: Effect.UNHEALTHY,
        74: Effect.SUSPECT,
    }


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("health: {temperature: {limitCelcius: 80}}", "unknown field .*allowed are .*limitCelsius"),
        ("health: {temperature: {limitCelsius: 8500}}", r"limitCelsius: 8500 is out of range"),
        ("health: {temperature: {limitCelsius: 0}}", r"limitCelsius: 0 is out of range"),
        ("health: {xids: {effects: {79: deadly}}}", r"health\.xids\.effects.*deadly"),
        ("health: {xids: {ignore: [79], effects: {79: suspect}}}", "79 is in ignore and in eff"),
        ("health: {recovery: {holdSeconds: 1801}}", "maxHoldSeconds: 1800 is less than holdS"),
        ("health: {recovery: {flapWindowSeconds: 60}}", "flapWindowSeconds: 60 is not more"),
        ("health: {alerts: {memoryPercent: 0}}", r"alerts\.memoryPercent: 0 is out of range"),
        ("health: {alerts: {idleSeconds: soon}}", r"health\.alerts\.idleSeconds: Expected"),
    ],
)
def test_what_makes_no_sense_is_refused_with_the_field_and_the_remedy(text: str, said: str) -> None:
    with pytest.raises(configfile.ConfigError, match=said):
        parse(text)
