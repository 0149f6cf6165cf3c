"""The variables of NVIDIA's plugin for Xids, against what its own tests expect."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.devices.illness import SOUND, Ward

from deviceplugin.health import variables, xids
from deviceplugin.health.config import HealthConfig, Xids
from deviceplugin.health.states import HealthState
from deviceplugin.health.variables import DISABLE, ENABLE, applied, problems
from deviceplugin.health.xids import Effect
from deviceplugin.model.signals import Xid

NONE, UNHEALTHY, SUSPECT = Effect.NONE, Effect.UNHEALTHY, Effect.SUSPECT


def effect(code: int, disable: str = "", enable: str = "", own: Xids | None = None) -> Effect:
    made = applied(own or Xids(), {DISABLE: disable, ENABLE: enable})
    return xids.load(made.overrides(), made.others).verdict(code).effect


@pytest.mark.parametrize(
    ("disable", "enable", "code", "expected"),
    [
        ("", "", 79, UNHEALTHY),
        ("79", "", 79, NONE),
        (" 79 , 48,", "", 48, NONE),
        ("79", "", 48, UNHEALTHY),
        ("all", "", 79, NONE),
        ("XIDs", "", 999, NONE),
        ("48,all", "", 79, NONE),
        ("all", "79", 79, UNHEALTHY),
        ("all", "79", 48, NONE),
        ("79", "79", 79, UNHEALTHY),
        ("", "13", 13, UNHEALTHY),
        ("", "13", 31, NONE),
        ("79", "all", 79, UNHEALTHY),
        ("all", "all", 13, UNHEALTHY),
        ("x,79,-1,1e3", "", 79, NONE),
    ],
)
def test_codes_are_ignored_and_watched_as_nvidia_s_plugin_does(
    disable: str, enable: str, code: int, expected: Effect
) -> None:
    assert effect(code, disable, enable) is expected


def test_an_effect_in_the_configuration_holds_against_the_variables() -> None:
    own = Xids(ignore=(13,), effects={79: SUSPECT})
    assert effect(79, "all", own=own) is SUSPECT
    assert effect(13, enable="all", own=own) is NONE
    assert effect(48, "all", own=Xids(others=SUSPECT)) is SUSPECT


def test_words_that_are_no_code_are_named() -> None:
    assert list(problems({})) == []
    [line] = problems({DISABLE: "13, abc,1e3", ENABLE: "all"})
    assert line.startswith(f"{DISABLE}: abc, 1e3: no Xid")


@given(st.text(), st.text(), st.integers(0, 999))
def test_any_text_is_read(disable: str, enable: str, code: int) -> None:
    assert effect(code, disable, enable) in set(Effect)
    assert all(0 <= one < 10**9 for one in variables.read(disable).codes)


def test_what_a_node_s_file_ignores_counts_at_once_and_until_it_is_taken_back() -> None:
    ward = Ward(HealthConfig(xids=Xids(ignore=(48,))))
    ward.monitor.ignore({79})
    for code in (79, 48):
        ward.hear(Xid(SOUND, code))
    assert ward.state() is HealthState.HEALTHY
    ward.monitor.ignore(())
    ward.hear(Xid(SOUND, 48))
    assert ward.state() is HealthState.HEALTHY
    ward.hear(Xid(SOUND, 79))
    assert ward.state() is HealthState.UNHEALTHY
