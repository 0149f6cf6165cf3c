"""Fleets by name: exact in number, seeded, in proportion; and what the phases' pods ask of them."""

from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loadtest.fourphase.driver import fleets
from loadtest.fourphase.load import mixedfleet
from loadtest.fourphase.load.pools import Ask, divided, drawn_from_all, pools_of
from loadtest.fourphase.load.schedule import plan
from loadtest.fourphase.load.spec import load
from loadtest.fourphase.report.outcome import Settings
from loadtest.fourphase.run.run import prepare
from loadtest.traces import fleet
from loadtest.traces.fleet import GPU_COUNT, GPU_PRODUCT, NVLINK, Fleet, FleetError, Host
from loadtest.traces.publisheddata import DataMissingError

DATA = Path(__file__).parents[5].parent / "shared" / "data"
NOWHERE = Path("/nonexistent")


@pytest.fixture
def data() -> Path:
    if not (DATA / fleets.LINGJUN).exists():
        pytest.skip(f"the published fleets are not in {DATA}")
    return DATA


def shape(made: Fleet) -> Counter[tuple[str, int, int, int]]:
    return Counter((h.model, h.gpus, h.millicpu, h.memory_mib) for h in made.hosts)


# --- mixed ----------------------------------------------------------------------------------


@given(hosts=st.integers(40, 3000), seed=st.integers(0, 9))
@settings(max_examples=40)
def test_a_mixed_fleet_keeps_number_shares_and_racks_at_any_size(hosts: int, seed: int) -> None:
    made = mixedfleet.mixed(hosts, seed=seed)
    assert len({host.name for host in made.hosts}) == hosts
    models = Counter(host.model for host in made.hosts)
    for kind in mixedfleet.KINDS:
        assert abs(models[kind.model] - hosts * kind.share / 100) < len(mixedfleet.KINDS)
        racks = Counter(h.rack for h in made.hosts if h.model == kind.model)
        blocks = Counter(h.block for h in made.hosts if h.model == kind.model)
        assert max(racks.values()) <= kind.rack
        assert max(blocks.values()) <= kind.block
    # A rack is in one block and a block in one zone; hosts of one rack stand together.
    assert len({(h.rack, h.block, h.zone) for h in made.hosts}) == len({h.rack for h in made.hosts})
    changes = sum(a.rack != b.rack for a, b in zip(made.hosts, made.hosts[1:], strict=False))
    assert changes == len({h.rack for h in made.hosts}) - 1


def test_nvlink_joins_the_hosts_of_one_rack_of_gb200_and_no_others() -> None:
    made = mixedfleet.mixed(1000)
    domains = {(h.rack, h.nvlink) for h in made.hosts if h.model == "NVIDIA-GB200"}
    assert len({nvlink for _, nvlink in domains}) == len(domains) == len(dict(domains))
    assert {h.nvlink for h in made.hosts if h.model != "NVIDIA-GB200"} == {""}
    assert len({h.zone for h in made.hosts}) == 3


def test_the_seed_decides_a_mixed_fleet() -> None:
    assert mixedfleet.mixed(500, seed=4) == mixedfleet.mixed(500, seed=4)
    assert mixedfleet.mixed(500, seed=4) != mixedfleet.mixed(500, seed=5)


def test_nodes_carry_the_labels_of_feature_discovery_and_the_nvlink_domain() -> None:
    made = mixedfleet.mixed(60)
    for host, node in zip(made.hosts, fleet.nodes(made), strict=True):
        labels, allocatable = node["metadata"]["labels"], node["status"]["allocatable"]
        assert (labels[GPU_PRODUCT], labels[GPU_COUNT]) == (host.model, str(host.gpus))
        assert labels.get(NVLINK, "") == host.nvlink
        assert allocatable["nvidia.com/gpu"] == str(host.gpus)
        assert allocatable["cpu"] == f"{host.millicpu}m"
    assert NVLINK in made.levels


def test_a_mixed_fleet_too_small_for_its_models_is_refused() -> None:
    with pytest.raises(FleetError, match="--fleet mixed --nodes 39: too few"):
        fleets.build("mixed", 39, seed=0, data=NOWHERE)


# --- lingjun --------------------------------------------------------------------------------


@pytest.mark.parametrize("nodes", [20, 200, 847, 900, 2000])
def test_lingjun_is_cut_or_repeated_to_the_very_number(data: Path, nodes: int) -> None:
    made = fleets.build("lingjun", nodes, seed=2, data=data)
    assert len({host.name for host in made.hosts}) == nodes
    leaves = Counter((host.block, host.rack) for host in made.hosts)
    assert max(leaves.values()) <= 8
    assert len({host.zone for host in made.hosts}) == -(-nodes // 847)


def test_a_cut_lingjun_keeps_the_shares_of_its_blocks_and_follows_the_seed(data: Path) -> None:
    made = fleets.build("lingjun", 400, seed=2, data=data)
    blocks = Counter(host.block for host in made.hosts)
    for found, whole in zip(sorted(blocks.values()), fleet.CLOS_GROUPS, strict=True):
        assert abs(found - whole * 400 / 847) <= 2
    assert made == fleets.build("lingjun", 400, seed=2, data=data)
    assert made != fleets.build("lingjun", 400, seed=3, data=data)


# --- openb ----------------------------------------------------------------------------------


def test_openb_at_its_own_size_has_the_published_machines(data: Path) -> None:
    made = fleets.build("openb", 1523, seed=1, data=data)
    assert made.gpus == 6212
    assert Counter(host.gpus for host in made.hosts)[0] == 310
    assert Counter(h.gpus for h in made.hosts if h.model == "G2") == {8: 549}


@pytest.mark.parametrize("nodes", [150, 761, 3000])
def test_openb_is_drawn_in_proportion(data: Path, nodes: int) -> None:
    whole = shape(fleets.build("openb", 1523, seed=1, data=data))
    made = fleets.build("openb", nodes, seed=1, data=data)
    assert len({host.name for host in made.hosts}) == nodes
    for kind, count in shape(made).items():
        assert abs(count - whole[kind] * nodes / 1523) < 1
    assert made == fleets.build("openb", nodes, seed=1, data=data)
    assert made != fleets.build("openb", nodes, seed=2, data=data)


@pytest.mark.parametrize("name", ["lingjun", "openb"])
def test_a_fleet_whose_data_is_absent_says_where_it_was_looked_for(name: str) -> None:
    with pytest.raises(DataMissingError, match=rf"--fleet {name}: /nonexistent/.* is not there"):
        fleets.build(name, 100, seed=0, data=NOWHERE)


# --- pools ----------------------------------------------------------------------------------


def hosts(model: str, gpus: int, count: int) -> list[Host]:
    names = [f"{model}{gpus}-{i}" for i in range(count)]
    return [Host(name, "z", "b", f"r{model}{gpus}", gpus, model) for name in names]


def test_equal_hosts_are_one_pool_without_a_selector() -> None:
    (only,) = pools_of(fleets.build("grid", 64, seed=0, data=NOWHERE))
    assert (only.name, only.room, only.ask.gpus, only.ask.selector) == ("", 64, 8, ())


def test_a_pod_takes_all_gpus_of_a_host_of_its_pool_and_hosts_without_gpus_stay_idle() -> None:
    made = Fleet("t", (*hosts("A", 8, 3), *hosts("A", 4, 2), *hosts("B", 4, 5), *hosts("", 0, 7)))
    pools = pools_of(made)
    assert [(pool.name, pool.ask.gpus, pool.room) for pool in pools] == [
        ("A x8", 8, 3),
        ("A x4", 4, 2),
        ("B x4", 4, 5),
    ]
    for pool in pools:
        takers = {host.name for host in made.hosts if pool.ask.on(host)}
        assert takers == set(pool.hosts)
        assert all(pool.ask.on(host) <= 1 for host in made.hosts)


def test_a_pod_fits_by_gpus_cpu_memory_and_model() -> None:
    host = Host("h", "z", "b", "r", 8, "T4", millicpu=9000, memory_mib=4096)
    assert Ask(2, millicpu=1000, memory_mib=1).on(host) == 4
    assert Ask(2, millicpu=3000, memory_mib=1).on(host) == 3
    assert Ask(2, millicpu=1000, memory_mib=4096).on(host) == 1
    assert Ask(0, millicpu=1000, memory_mib=1).on(host) == 9
    assert Ask(1, models=("P100", "A10")).on(host) == 0
    assert Ask(1, models=("P100", "T4")).on(host) == 4


@given(total=st.integers(0, 5000), weights=st.lists(st.integers(1, 900), min_size=1, max_size=12))
def test_a_division_is_whole_and_the_odd_ones_go_to_the_largest(
    total: int, weights: list[int]
) -> None:
    shares = divided(total, weights)
    assert sum(shares) == total
    exact = [total * weight / sum(weights) for weight in weights]
    assert all(share - 1 <= want < share + 1 for share, want in zip(shares, exact, strict=True))
    if total <= sum(weights):
        assert all(share <= weight for share, weight in zip(shares, weights, strict=True))


def test_nodes_are_lost_in_every_pool_in_proportion_used_ones_first() -> None:
    pools = pools_of(Fleet("t", (*hosts("A", 8, 10), *hosts("B", 8, 30))))
    order = [name for pool in pools for name in pool.hosts]
    assert drawn_from_all(order, 4, pools) == ["A8-0", "B8-0", "B8-1", "B8-2"]
    assert drawn_from_all(order, 0, pools) == []


@given(nodes=st.integers(40, 2000), seed=st.integers(0, 5))
@settings(max_examples=25, deadline=None)
def test_every_pool_has_room_for_what_the_phases_bring_to_it(nodes: int, seed: int) -> None:
    pools = pools_of(mixedfleet.mixed(nodes, seed=seed))
    made = plan(load(), nodes, seed=seed, pools=pools)
    assert made.rooms == {pool.name: pool.room for pool in pools}
    for phase in made.phases:
        brought = Counter[str]()
        for gang in phase.gangs:
            brought[gang.ask.pool] += gang.takes
        assert all(brought[name] <= room for name, room in made.rooms.items())
    assert sum(gang.size for gang in made.phases[0].gangs) == nodes


def test_a_load_on_pools_is_the_same_for_the_same_seed() -> None:
    settings_ = Settings(nodes=200, fleet="mixed", seed=3)
    assert prepare(settings_) == prepare(settings_)
