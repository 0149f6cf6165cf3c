"""Replicas: the examples of NVIDIA's README ("Shared Access to GPUs"), and per-GPU rules."""

import pytest
from support.devices.machines import inventory

from deviceplugin.cluster.nvidiaconfig import parse
from deviceplugin.errors import AllocationRefused, RefusalCause
from deviceplugin.model.inventory import Inventory
from deviceplugin.resources.advertisements import Advertised, Advertisement, SharingMode
from deviceplugin.resources.advertising import advertise, resource_of, shares_of
from deviceplugin.resources.settings import (
    ResourceSettings,
    SharingRule,
    SharingSettings,
    SharingWays,
)

DGX = inventory("dgx-a100")


def by_file(text: str, node: Inventory = DGX) -> Advertisement:
    return advertise(node, parse(text.encode(), source="config.yaml").resources)


def sliced(*rules: SharingRule, node: Inventory = DGX) -> Advertisement:
    return advertise(node, ResourceSettings(sharing=SharingWays(SharingSettings(rules))))


def counts(found: Advertisement) -> dict[str, int]:
    return {each.resource: len(each.devices) for each in found.resources}


def only(found: Advertisement) -> Advertised:
    [each] = found.resources
    return each


@pytest.mark.parametrize("way", ["timeSlicing", "mps"])
@pytest.mark.parametrize(
    ("rename", "name"), [("false", "nvidia.com/gpu"), ("true", "nvidia.com/gpu.shared")]
)
def test_ten_replicas_of_eight_gpus_are_eighty(way: str, rename: str, name: str) -> None:
    found = by_file(
        f"""
        version: v1
        sharing:
          {way}:
            renameByDefault: {rename}
            resources:
            - name: nvidia.com/gpu
              replicas: 10
        """
    )
    assert counts(found) == {name: 80}
    assert only(found).sharing is SharingMode({"timeSlicing": "time-slicing", "mps": "mps"}[way])
    assert only(found).renamed == (rename == "true")


def test_a_replica_is_the_gpus_uuid_with_a_number_and_its_health() -> None:
    found = only(sliced(SharingRule("gpu", 2)))
    gpu = DGX.gpus[0]
    assert [device.id for device in found.devices[:2]] == [f"{gpu.uuid}::0", f"{gpu.uuid}::1"]
    assert {device.parents for device in found.devices[:2]} == {(gpu.uuid,)}
    assert {device.numa for device in found.devices[:2]} == {(gpu.place.numa,)}
    assert [device.share for device in found.devices[:2]] == [0, 1]


def test_mig_instances_are_time_sliced_and_have_the_health_of_their_gpu() -> None:
    node = inventory("dgx-a100/all-3g.40gb")
    found = by_file(
        """
        version: v1
        flags: {migStrategy: mixed}
        sharing:
          timeSlicing:
            renameByDefault: true
            resources: [{name: nvidia.com/mig-3g.40gb, replicas: 2}]
        """,
        node,
    )
    assert counts(found) == {"nvidia.com/mig-3g.40gb.shared": 32}
    assert only(found).profile == "3g.40gb"
    assert {d.parents[0] for d in only(found).devices} == {gpu.uuid for gpu in node.gpus}


def test_each_gpu_is_shared_in_its_own_measure() -> None:
    found = sliced(
        SharingRule("nvidia.com/gpu", 2, "nvidia.com/gpu-light", (0,)),
        SharingRule("nvidia.com/gpu", 4, "nvidia.com/gpu-heavy", ("1", DGX.gpus[2].uuid)),
    )
    assert counts(found) == {
        "nvidia.com/gpu": 5,
        "nvidia.com/gpu-heavy": 8,
        "nvidia.com/gpu-light": 2,
    }
    assert not found.problems
    assert resource_of(found)[DGX.gpus[2].uuid] == "nvidia.com/gpu-heavy"
    assert shares_of(found) == {gpu.uuid: n for gpu, n in zip(DGX.gpus[:3], (2, 4, 4), strict=True)}


def test_a_count_of_devices_takes_the_first_ones() -> None:
    found = sliced(SharingRule("gpu", 3, "gpu.small", 2))
    assert counts(found) == {"nvidia.com/gpu": 6, "nvidia.com/gpu.small": 6}


def test_an_instance_is_named_by_its_gpu_and_its_number() -> None:
    node = inventory("dgx-a100/all-3g.40gb")
    settings = ResourceSettings(
        mig_strategy="mixed",
        sharing=SharingWays(
            SharingSettings((SharingRule("mig-3g.40gb", 2, "mig-shared", ("1:0",)),))
        ),
    )
    found = advertise(node, settings)
    shared = found.of("nvidia.com/mig-shared")
    assert shared is not None
    mig = node.gpus[1].mig
    assert mig is not None
    assert {device.device for device in shared.devices} == {mig.instances[0].uuid}


def test_rules_can_speak_of_models() -> None:
    found = sliced(SharingRule("gpu", 2, models=("H100",)))
    assert counts(found) == {"nvidia.com/gpu": 8}
    assert counts(sliced(SharingRule("gpu", 2, models=("A100-SXM4",)))) == {"nvidia.com/gpu": 16}


def test_whole_gpus_and_replicas_may_have_one_name() -> None:
    found = sliced(SharingRule("gpu", 4, devices=(7,)))
    assert counts(found) == {"nvidia.com/gpu": 7 + 4}
    assert only(found).sharing is SharingMode.TIME_SLICING


@pytest.mark.parametrize(
    ("rules", "reported"),
    [
        ((SharingRule("gpu", 2, devices=(0, 9)),), "9 not there"),
        ((SharingRule("gpu", 2, devices=12),), "12 devices, of which 8 are not there"),
        (
            (SharingRule("gpu", 2, devices=(0,)), SharingRule("gpu", 3, "x/gpu", (0,))),
            "an earlier rule",
        ),
        ((SharingRule("gpu", 2, "x/y", (0,)),), ""),
        ((SharingRule("gpu", 2049),), "at most 16384; write replicas: 2048"),
    ],
)
def test_what_a_rule_cannot_do_is_reported(rules: tuple[SharingRule, ...], reported: str) -> None:
    problems = sliced(*rules).problems
    assert (reported in problems[0].text) if reported else not problems


def test_two_kinds_of_devices_never_get_one_name() -> None:
    node = inventory("dgx-a100", cuts={0: "7g.80gb@0"})
    rules = (SharingRule("gpu", 2, "x/shared"), SharingRule("mig-7g.80gb", 2, "x/shared"))
    settings = ResourceSettings("mixed", sharing=SharingWays(SharingSettings(rules)))
    found = advertise(node, settings)
    assert counts(found) == {"x/shared": 2}
    assert "MIG instances 7g.80gb and GPUs" in found.problems[0].text


def test_mps_shares_no_mig_instance_and_has_so_many_clients() -> None:
    node = inventory("dgx-a100", cuts={0: "7g.80gb@0"})
    rules = (SharingRule("mig-7g.80gb", 2), SharingRule("gpu", 49))
    settings = ResourceSettings("mixed", sharing=SharingWays(mps=SharingSettings(rules)))
    found = advertise(node, settings)
    assert counts(found) == {"nvidia.com/gpu": 7, "nvidia.com/mig-7g.80gb": 1}
    texts = {problem.text.partition(": ")[2] for problem in found.problems}
    assert texts == {
        "MIG instances are not shared by MPS; take timeSlicing",
        "an MPS server has at most 48 clients, and replicas is 49",
    }


def test_amd_gpus_are_time_sliced_and_know_no_mps() -> None:
    node, rules = inventory("mi300x"), SharingSettings((SharingRule("amd.com/gpu", 2),))
    slices = advertise(node, ResourceSettings(sharing=SharingWays(rules)))
    assert counts(slices) == {"amd.com/gpu": 16}
    whole = advertise(node, ResourceSettings(sharing=SharingWays(mps=rules)))
    assert counts(whole) == {"amd.com/gpu": 8}
    assert "MPS is NVIDIA's" in whole.problems[0].text


# --- requests -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("way", "said", "most"),
    [
        ("timeSlicing", "", 0),
        ("timeSlicing", "failRequestsGreaterThanOne: true,", 1),
        ("mps", "", 1),  # upstream: TestNewConfigDefaultsMPSFailRequestsGreaterThanOne
        ("mps", "failRequestsGreaterThanOne: false,", 0),
    ],
)
def test_more_than_one_replica_is_refused_where_it_is_to_be(way: str, said: str, most: int) -> None:
    resources = "resources: [{name: nvidia.com/gpu, replicas: 2}]"
    found = only(by_file(f"version: v1\nsharing: {{{way}: {{{said} {resources}}}}}"))
    assert found.most == most
    two = tuple(device.id for device in found.devices[:2])
    if not most:
        assert found.asked(two) == found.devices[:2]
        return
    with pytest.raises(AllocationRefused, match="failRequestsGreaterThanOne") as refused:
        found.asked(two)
    assert refused.value.cause is RefusalCause.BAD_REQUEST


def test_whole_gpus_are_not_limited_by_rules_for_shared_ones() -> None:
    rules = SharingSettings(
        (SharingRule("gpu", 2, devices=(0,)),), fail_requests_greater_than_one=True
    )
    found = only(advertise(DGX, ResourceSettings(sharing=SharingWays(rules))))
    whole = tuple(device.id for device in found.devices if device.share is None)
    assert len(found.asked(whole)) == 7


@pytest.mark.parametrize(
    ("ids", "cause", "reported"),
    [
        ((), RefusalCause.BAD_REQUEST, "no device"),
        (("GPU-x",), RefusalCause.UNKNOWN_DEVICE, "GPU-x is not there"),
        ((DGX.gpus[0].uuid,) * 2, RefusalCause.BAD_REQUEST, "twice"),
    ],
)
def test_requests_that_make_no_sense_are_refused(
    ids: tuple[str, ...], cause: RefusalCause, reported: str
) -> None:
    found = only(advertise(DGX, ResourceSettings()))
    with pytest.raises(AllocationRefused, match=reported) as refused:
        found.asked(ids)
    assert refused.value.cause is cause
