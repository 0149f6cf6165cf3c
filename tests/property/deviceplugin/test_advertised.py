"""Whatever a node has and settings say: ids are unique and short, and a device goes one way."""

from collections.abc import Sequence
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st
from support.devices.machines import inventory

from deviceplugin.model.inventory import Inventory, Vendor
from deviceplugin.resources import names
from deviceplugin.resources.advertisements import (
    LONGEST_ID,
    MOST_IDS,
    AdvertisedKind,
    Advertisement,
)
from deviceplugin.resources.advertising import advertise
from deviceplugin.resources.settings import (
    MemorySlices,
    NicPool,
    ResourceSettings,
    Selectors,
    SharingRule,
    SharingSettings,
    SharingWays,
    problems,
)

CUTS = ("", "7g.80gb@0", "3g.40gb@0 3g.40gb@4", "1g.10gb@0 1g.10gb+me@1 2g.20gb@2 3g.40gb@4")
NAMES = ("gpu", "nvidia.com/gpu", "mig-3g.40gb", "mig-1g.10gb", "amd.com/gpu")
PLAIN = {name: inventory(name) for name in ("dgx-h100", "mi300x", "pcie-t4", "gb200-nvl72")}


@st.composite
def nodes(draw: st.DrawFn) -> Inventory:
    """A machine, some of whose GPUs are cut, some taken out; sometimes with AMD's beside it."""
    if draw(st.booleans()):
        cuts = draw(st.dictionaries(st.integers(0, 7), st.sampled_from(CUTS), max_size=8))
        node = inventory("dgx-a100", cuts=cuts)
    else:
        node = PLAIN[draw(st.sampled_from(sorted(PLAIN)))]
    gone = draw(st.sets(st.integers(0, 7), max_size=3))
    more = PLAIN["mi300x"].gpus if draw(st.booleans()) else ()
    gpus = tuple(gpu for gpu in node.gpus if gpu.index not in gone)
    return replace(node, gpus=gpus if gpus and gpus[0].vendor is Vendor.AMD else (*gpus, *more))


DEVICES: st.SearchStrategy[object] = st.one_of(
    st.just("all"),
    st.integers(1, 9),
    st.lists(st.sampled_from([0, 1, 7, "2", "0:0", "1:3"]), min_size=1, max_size=4).map(tuple),
)
RULES = st.builds(
    SharingRule,
    name=st.sampled_from(NAMES),
    replicas=st.sampled_from([1, 2, 48, 49, 3000]),
    rename=st.sampled_from(["", "", "nvidia.com/gpu.small", "x/y"]),
    devices=DEVICES,
    models=st.sampled_from([(), (), ("H100",), ("A100", "MI300X")]),
)
SHARING = st.builds(
    SharingSettings,
    resources=st.lists(RULES, min_size=1, max_size=3).map(tuple),
    rename_by_default=st.booleans(),
    fail_requests_greater_than_one=st.sampled_from([None, True, False]),
)
WAYS = st.one_of(
    st.just(SharingWays()),
    st.builds(SharingWays, SHARING),
    st.builds(SharingWays, st.none(), SHARING),
)
POOLS = st.builds(
    NicPool,
    resource_name=st.sampled_from(["a", "b"]),
    rdma_hca_max=st.sampled_from([0, 1, 13, 1000]),
    grants=st.sampled_from(["pool", "nic"]),
    selectors=st.sampled_from([Selectors(), Selectors(link_types=("ether",))]),
)
SETTINGS = st.builds(
    ResourceSettings,
    mig_strategy=st.sampled_from(["none", "single", "mixed"]),
    amd_naming=st.sampled_from(["single", "mixed"]),
    sharing=WAYS,
    memory=st.lists(
        st.builds(
            MemorySlices,
            resource=st.sampled_from(["aliyun.com/gpu-mem", "nvidia.com/gpu"]),
            unit_gib=st.sampled_from([1, 4, 100]),
            devices=DEVICES,
        ),
        max_size=2,
    ).map(tuple),
    rdma=st.lists(POOLS, max_size=2, unique_by=lambda pool: pool.resource).map(tuple),
)


def ids(found: Advertisement) -> list[str]:
    return [device.id for each in found.resources for device in each.devices]


@given(nodes(), SETTINGS)
def test_ids_are_unique_short_and_of_devices_that_are_there(
    node: Inventory, settings: ResourceSettings
) -> None:
    assert not list(problems(settings))
    found = advertise(node, settings)
    gpus = {gpu.uuid for gpu in node.gpus}
    nics = {nic.name for nic in node.nics}
    for each in found.resources:
        assert not names.problem(each.resource)
        assert 0 < len(each.devices) <= MOST_IDS
        assert len(each.by_id) == len(each.devices)
        for device in each.devices:
            assert len(device.id) <= LONGEST_ID
            assert device.parents
            assert set(device.parents) <= (nics if each.kind is AdvertisedKind.NIC else gpus)
    named = [each.resource for each in found.resources]
    assert named == sorted(set(named))


@given(nodes(), SETTINGS)
def test_a_gpu_is_advertised_in_one_way_or_a_problem_is_reported(
    node: Inventory, settings: ResourceSettings
) -> None:
    found = advertise(node, settings)
    for gpu in node.gpus:
        ways = {
            (each.resource, device.device)
            for each in found.resources
            if each.kind is not AdvertisedKind.NIC
            for device in each.devices
            if gpu.uuid in device.parents
        }
        whole = {device for _, device in ways if device == gpu.uuid}
        assert not whole or len(ways) == 1
        assert len({device for _, device in ways}) == len(ways)
        cut = gpu.mig is not None and gpu.mig.enabled
        assert ways or cut or found.problems


@given(nodes(), SETTINGS)
def test_the_same_node_and_settings_give_the_same_ids(
    node: Inventory, settings: ResourceSettings
) -> None:
    assert advertise(node, settings) == advertise(node, settings)


@given(nodes(), SETTINGS, st.data())
def test_losing_a_gpu_renames_none_of_the_others(
    node: Inventory, settings: ResourceSettings, data: st.DataObject
) -> None:
    """Ids are of UUIDs: who holds one keeps it.

    Rules that count devices may share others, and those that name an index which GPUs of two
    makers have.
    """
    ruled = [rule.devices for rule in _rules(settings)] + [s.devices for s in settings.memory]
    if not node.gpus or any(isinstance(devices, int) for devices in ruled):
        return
    if any(isinstance(devices, tuple) for devices in ruled) and len(makers(node)) > 1:
        return
    gone = data.draw(st.sampled_from(node.gpus)).uuid
    before = advertise(node, settings)
    left = replace(node, gpus=tuple(gpu for gpu in node.gpus if gpu.uuid != gone))
    after = advertise(left, settings)
    if before.problems or after.problems:
        return
    mine = [
        device.id
        for each in before.resources
        for device in each.devices
        if gone not in device.parents
    ]
    if settings.mig_strategy != "single":
        assert sorted(ids(after)) == sorted(mine)


def makers(node: Inventory) -> set[Vendor]:
    return {gpu.vendor for gpu in node.gpus}


def _rules(settings: ResourceSettings) -> Sequence[SharingRule]:
    ways = settings.sharing
    chosen = ways.mps or ways.time_slicing
    return chosen.resources if chosen else ()
