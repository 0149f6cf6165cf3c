"""Generated fleets and jobs keep the published figures; files are read or refused in words."""

from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadtest.traces.fleet import CLOS_GROUPS, FleetError, clos, grid, nodes, read_topology
from loadtest.traces.trace import PHILLY_SIZES, Job, TraceError, philly_like, read_philly


def test_the_whole_clos_has_the_published_groups() -> None:
    fleet = clos()
    groups = Counter(host.block for host in fleet.hosts)
    assert tuple(groups[f"agg-{i}"] for i in (1, 2, 3)) == CLOS_GROUPS
    assert fleet.gpus == 847 * 8
    assert len({host.name for host in fleet.hosts}) == 847


@given(st.integers(10, 1000), st.integers(0, 9))
def test_leaves_have_two_to_eight_hosts_at_any_size(hosts: int, seed: int) -> None:
    fleet = clos(hosts, seed=seed)
    assert len(fleet.hosts) == hosts
    leaves = Counter((host.block, host.rack) for host in fleet.hosts)
    assert all(2 <= size <= 8 for size in leaves.values())


def test_the_same_seed_gives_the_same_fleet_and_jobs() -> None:
    assert clos(seed=3) == clos(seed=3)
    assert philly_like(50, largest=999, seed=3) == philly_like(50, largest=999, seed=3)
    assert philly_like(50, largest=999, seed=3) != philly_like(50, largest=999, seed=4)


def test_a_grid_has_racks_of_the_size_asked_for() -> None:
    racks = Counter(host.rack for host in grid(64, blocks=2, rack=16).hosts)
    assert set(racks.values()) == {16}


def test_nodes_carry_their_place_and_gpus() -> None:
    node = next(nodes(clos(10)))
    assert node["metadata"]["labels"]["muster.dev/block"] == "agg-1"
    assert node["status"]["allocatable"]["nvidia.com/gpu"] == "8"


@pytest.mark.parametrize(
    ("gpus", "pods", "each"), [(1, 1, 1), (4, 1, 4), (8, 1, 8), (12, 3, 4), (24, 3, 8), (64, 8, 8)]
)
def test_jobs_are_cut_into_equal_pods(gpus: int, pods: int, each: int) -> None:
    job = Job("j", "t", gpus, 0.0, 1.0)
    assert (job.pods, job.gpus_per_pod) == (pods, each)


def test_sizes_follow_phillys_and_large_gangs_are_counted_apart() -> None:
    trace = philly_like(4_000, largest=512, large_share=0.1)
    small = Counter(job.gpus for job in trace.jobs if not job.large)
    assert set(small) <= set(PHILLY_SIZES)
    assert abs(small[1] / small.total() - 0.93) < 0.02
    large = [job.gpus for job in trace.jobs if job.large]
    assert len(large) == 400
    assert max(large) == 512


def test_compression_divides_every_time() -> None:
    trace = philly_like(10, largest=0)
    half = trace.compressed(2.0)
    assert half.span == pytest.approx(trace.span / 2)
    assert half.jobs[3].duration == pytest.approx(trace.jobs[3].duration / 2)


def test_a_topology_file_is_read_with_leaves_named_below_their_group(tmp_path: Path) -> None:
    path = tmp_path / "topo.csv"
    path.write_text("ip,DSW,PSW,ASW\na,G,P1,S1\nb,G,P1,S1\nc,G,P2,S1\n")
    fleet = read_topology(path)
    assert [(h.name, h.block, h.rack) for h in fleet.hosts] == [
        ("p1-s1-h1", "P1", "P1-S1"),
        ("p1-s1-h2", "P1", "P1-S1"),
        ("p2-s1-h1", "P2", "P2-S1"),
    ]


def test_a_trace_file_is_read_in_order_of_submission(tmp_path: Path) -> None:
    path = tmp_path / "jobs.csv"
    header = "timestamp,duration,num_gpus,gpu_time,cluster\n"
    rows = "2017-10-01 00:00:10,5,1,5,x\n2017-10-01 00:00:00,7,16,112,y\n"
    path.write_text(header + rows)
    jobs = read_philly(path, 2, largest=0).jobs
    assert [(job.gpus, job.arrival, job.duration) for job in jobs] == [
        (16, 0.0, 7.0),
        (1, 10.0, 5.0),
    ]


@pytest.mark.parametrize("text", ["", "a,b\n1,2\n", "ip,DSW,PSW\n1,2,3\n"])
def test_a_wrong_topology_file_is_refused_by_name(tmp_path: Path, text: str) -> None:
    path = tmp_path / "wrong.csv"
    path.write_text(text)
    with pytest.raises(FleetError, match=r"wrong\.csv"):
        read_topology(path)


@pytest.mark.parametrize(
    "row", ["yesterday,1,1,1,x", "2017-10-01 00:00:10,soon,1,1,x", "2017-10-01 00:00:10,1,many,1,x"]
)
def test_a_wrong_trace_file_is_refused_with_its_line(tmp_path: Path, row: str) -> None:
    path = tmp_path / "wrong.csv"
    path.write_text(f"timestamp,duration,num_gpus,gpu_time,cluster\n{row}\n")
    with pytest.raises(TraceError, match=r"wrong\.csv: line 2"):
        read_philly(path, 1, largest=0)
