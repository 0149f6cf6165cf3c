"""What the kubelet is refused, and what is given again once a pod has ended.

The node of ``support.handshakes``: gpu0 … gpu5 whole, gpu6 shared, gpu7 cut, four NICs.
"""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from support.devices.handshakes import GPU, ask, container, listed, pod, table

from deviceplugin.allocation.claims import ClaimStage
from deviceplugin.allocation.table import Table
from deviceplugin.allocation.values import ListedDevices, PodStage
from deviceplugin.errors import AllocationRefused, RefusalCause


def refused(found: Table, ids: Sequence[str], resource: str = GPU) -> RefusalCause:
    given, reported = found.given(), found.deviations()
    with pytest.raises(AllocationRefused) as error:
        found.allocate(resource, ids)
    assert (found.given(), found.deviations()) == (given, reported)
    return error.value.cause


def test_what_nobody_can_be_given_is_refused_and_changes_nothing() -> None:
    found = table(pod("p"), ill=["gpu3"])
    assert refused(found, []) is RefusalCause.BAD_REQUEST
    assert refused(found, ["gpu0", "gpu0"]) is RefusalCause.BAD_REQUEST
    assert refused(found, ["gpu0", "GPU-x"]) is RefusalCause.UNKNOWN_DEVICE
    assert refused(found, ["gpu0", "gpu3"]) is RefusalCause.UNHEALTHY
    assert refused(found, ["gpu0"], "example.com/none") is RefusalCause.UNKNOWN_DEVICE


def running(found: Table, name: str, *ids: str) -> None:
    """Have a pod run that has these GPUs."""
    found.pod(pod(name, container("main", gpu=len(ids)), plan=ids))
    found.allocate(GPU, ids)
    found.starting(GPU, ids)
    found.listed([listed(name, *ids)], found.serial)


def test_a_kubelet_that_lost_its_checkpoint_gives_nothing_away_that_is_in_use() -> None:
    found = table()
    running(found, "old", "gpu0", "gpu1")
    found.pod(pod("new"))
    assert found.doubts(GPU, ["gpu1", "gpu2"])
    found.listed([ListedDevices("default", "old"), ListedDevices("default", "new")], found.serial)
    assert refused(found, ["gpu1", "gpu2"]) is RefusalCause.TAKEN
    assert refused(found, ["gpu0", "gpu1"]) is RefusalCause.TAKEN
    found.allocate(GPU, ["gpu2", "gpu3"])


def test_a_kubelet_that_was_never_asked_is_right_about_what_is_free() -> None:
    """Whose claims are whose is a guess then, and a guess fails no pod."""
    found = table(pod("old", plan=("gpu0", "gpu1")))
    ask(found, 2)
    found.starting(GPU, ["gpu0", "gpu1"])
    found.pod(pod("new"))
    assert not found.doubts(GPU, ["gpu0"])
    found.allocate(GPU, ["gpu0", "gpu1"])
    found.validate()


@pytest.mark.parametrize("how", ["ending", "over", "gone", "the kubelet does not know it"])
def test_what_a_pod_had_that_has_ended_is_given_to_the_next(how: str) -> None:
    found = table()
    running(found, "old", "gpu0", "gpu1")
    old = pod("old", container("main", gpu=2), plan=("gpu0", "gpu1"), life=PodStage.ENDING)
    if how == "gone":
        found.gone("uid-old")
    elif how == "the kubelet does not know it":
        found.listed([ListedDevices("default", "new")], found.serial)
    else:
        found.pod(replace(old, life=PodStage.ENDING if how == "ending" else PodStage.OVER))
    found.pod(pod("new", plan=("gpu0", "gpu1")))
    found.allocate(GPU, ["gpu0", "gpu1"])
    assert found.given() == {"uid-new": {GPU: ("gpu0", "gpu1")}}
    found.validate()


def test_a_pod_that_failed_before_it_started_leaves_its_devices_to_the_next() -> None:
    found = table(pod("failed", plan=("gpu0", "gpu1")))
    ask(found, 2)
    found.pod(pod("next", container("main", gpu=1)))
    found.allocate(GPU, ["gpu0"])
    assert found.given() == {"uid-next": {GPU: ("gpu0",)}}


def test_a_container_starts_again_and_again() -> None:
    found = table(pod("p", plan=("gpu0", "gpu1")))
    ask(found, 2)
    for _ in range(2):
        found.starting(GPU, ["gpu1", "gpu0"])
    (claim,) = found._book.claims
    assert claim.stage is ClaimStage.CONFIRMED


def test_a_container_whose_devices_are_partly_others_does_not_start() -> None:
    found = table()
    running(found, "one", "gpu0", "gpu1")
    with pytest.raises(AllocationRefused) as error:
        found.starting(GPU, ["gpu1", "gpu2"])
    assert error.value.cause is RefusalCause.TAKEN


def test_a_container_that_starts_after_this_process_was_away_has_what_it_has() -> None:
    found = table()
    found.starting(GPU, ["gpu0", "gpu1"])
    found.pod(pod("p"))
    found.listed([listed("p", "gpu0", "gpu1")], found.serial)
    assert found.given() == {"uid-p": {GPU: ("gpu0", "gpu1")}}
