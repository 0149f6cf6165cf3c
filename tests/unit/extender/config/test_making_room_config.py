"""The section ``makingRoom``: whose queues take and give."""

import pytest

from extender.config import settings
from extender.config.makingroom import MakingRoomConfig, VolcanoActions
from muster.observability.configfile import ConfigError
from muster.queueing.preemption.policies import GivingServices, RoomPermission

HEAD = "apiVersion: muster.dev/v1alpha1\nkind: ExtenderConfiguration\n"


def _parsed(room: str) -> MakingRoomConfig:
    return settings.parse(f"{HEAD}makingRoom: {room}\n".encode(), source="test").making_room


def test_nobody_makes_room_unless_it_is_enabled() -> None:
    assert MakingRoomConfig().permitted() == {}
    assert _parsed("{queues: [kueue]}").permitted() == {}


def test_musters_own_queues_make_room_where_no_others_are_named() -> None:
    assert _parsed("{enabled: true}").permitted() == {"muster": RoomPermission()}


def test_queues_of_the_dialects_that_are_named_make_room_and_no_others() -> None:
    found = _parsed("{enabled: true, queues: [kueue, kai]}").permitted()
    assert found == {"kueue": RoomPermission(), "kai": RoomPermission()}


def test_volcanos_queues_make_room_by_the_actions_that_are_on() -> None:
    found = _parsed("{enabled: true, queues: [volcano], volcano: {reclaim: true}}").permitted()
    assert found == {"volcano": RoomPermission(within=False, between=True)}
    both = MakingRoomConfig(
        enabled=True, queues=("volcano",), volcano=VolcanoActions(preempt=True, reclaim=True)
    )
    assert both.permitted() == {"volcano": RoomPermission()}


def test_a_dialect_that_is_none_is_refused_with_those_there_are() -> None:
    with pytest.raises(ConfigError, match=r'queues: "slurm" is not allowed: one of muster'):
        _parsed("{queues: [slurm]}")


def test_volcano_without_an_action_is_refused() -> None:
    with pytest.raises(ConfigError, match="set one of them to true, or leave volcano out"):
        _parsed("{queues: [volcano]}")


def test_services_give_way_where_they_share_their_devices() -> None:
    assert _parsed("{enabled: true}").services is GivingServices.SHARED


@pytest.mark.parametrize("services", list(GivingServices))
def test_which_services_give_way_is_a_setting(services: GivingServices) -> None:
    assert _parsed(f"{{services: {services.value}}}").services is services


def test_another_word_for_services_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"makingRoom\.services"):
        _parsed("{services: dedicated}")
