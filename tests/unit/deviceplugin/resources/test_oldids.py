"""A device is not handed out twice because its ids have changed under a container."""

import pytest
from support.devices.machines import inventory

from deviceplugin.model.holdings import ContainerHolding
from deviceplugin.resources.advertisements import Advertisement
from deviceplugin.resources.advertising import advertise
from deviceplugin.resources.oldids import outlived
from deviceplugin.resources.settings import (
    ResourceSettings,
    SharingRule,
    SharingSettings,
    SharingWays,
)

DGX = inventory("dgx-h100")
GPU, FIRST = "nvidia.com/gpu", DGX.gpus[0].uuid


def offered(replicas: int, *, rename: bool = False) -> Advertisement:
    if replicas == 1:
        return advertise(DGX, ResourceSettings())
    rules = SharingSettings((SharingRule(GPU, replicas),), rename_by_default=rename)
    return advertise(DGX, ResourceSettings(sharing=SharingWays(rules)))


def has(*ids: str, resource: str = GPU) -> list[ContainerHolding]:
    return [ContainerHolding("default", "a", "main", {resource: ids})]


@pytest.mark.parametrize(
    ("held", "replicas", "rename", "kept"),
    [
        ((FIRST,), 4, False, True),  # whole before, shared now
        ((f"{FIRST}::0",), 1, False, True),  # shared before, whole now
        ((f"{FIRST}::0",), 4, True, False),  # shared before and now, under another name
        ((f"{FIRST}::7",), 4, False, False),  # likewise, by fewer
        ((FIRST,), 1, False, False),  # nothing has changed: the kubelet knows that it is taken
        ((f"{FIRST}::0",), 4, False, False),
    ],
)
def test_what_somebody_has_by_an_old_id_is_kept_from_others_unless_it_is_shared(
    *, held: tuple[str, ...], replicas: int, rename: bool, kept: bool
) -> None:
    found = outlived(offered(replicas, rename=rename), has(*held))
    assert found == (frozenset({FIRST}) if kept else frozenset())


def test_what_containers_have_of_other_plugins_changes_nothing() -> None:
    assert FIRST not in outlived(offered(4), has("nic0", resource="example.com/nic"))
