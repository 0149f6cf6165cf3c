"""The benchmark's oracle and restated rules, each beside what is known by hand or enumeration."""

import itertools

import pytest

from loadtest.benches.topology import bench
from loadtest.benches.topology.cases import Case, Host, Kind, generate, layers
from loadtest.benches.topology.oracle import Optimum, solve
from loadtest.benches.topology.rules import RULES, used
from loadtest.benches.topology.score import answer

LEVELS = ("block", "rack", "host")


def case(*racks: str, kinds: tuple[Kind, ...], **wishes: object) -> Case:
    """Draw a cluster: ``"a/r1 2 3"`` is a rack of block a with two hosts' free GPUs."""
    hosts = []
    for rack in racks:
        place, *free = rack.split()
        labels = tuple(None if part == "-" else part for part in place.split("/"))
        for gpus in free:
            hosts.append(Host(f"h{len(hosts)}", labels, 8, int(gpus), 64_000))
    fields = {"required": None, "preferred": None} | wishes
    return Case(0, LEVELS, tuple(hosts), kinds, **fields)  # type: ignore[arg-type]


def pods(count: int, gpus: int = 1) -> tuple[Kind, ...]:
    return (Kind(gpus, 1000, count),)


def test_the_oracle_and_the_planner_agree_on_cases_of_every_kind() -> None:
    figures, misses = bench.run(40)
    assert misses == []
    assert figures["optimal_share_homogeneous"] == 1.0
    assert figures["completeness"] == 1.0
    assert figures["optimal_share_heterogeneous"] == 1.0
    assert figures["worse_than_rule_cases"] == figures["invalid_cases"] == 0


@pytest.mark.parametrize("number", range(40))
def test_the_oracle_finds_what_enumeration_finds(number: int) -> None:
    whole = generate(number, mixed=False)
    hosts = whole.hosts[:5]
    kind = Kind(whole.kinds[0].gpus, whole.kinds[0].millicpu, min(whole.members, 8))
    small = Case(number, whole.levels, hosts, (kind,), whole.required, whole.preferred)
    found = solve(small)
    assert found is not None
    assert found.used == _enumerated(small)


def _enumerated(small: Case) -> tuple[int, ...] | None:
    rooms = [host.room(small.kinds[0]) if small.eligible(host) else 0 for host in small.hosts]
    domains = small.domains()
    options = []
    for amounts in itertools.product(*(range(room + 1) for room in rooms)):
        if sum(amounts) != small.members:
            continue
        if small.required is not None:
            names = domains[small.required]
            if len({names[h] for h, n in enumerate(amounts) if n}) > 1:
                continue
        options.append(used(small, [[n] for n in amounts]))
    return min(options, default=None)


def test_two_kinds_on_two_racks_cross_twice_when_the_second_goes_back() -> None:
    servers, workers = Kind(0, 32_000, 4), Kind(8, 1000, 4)
    #  a host takes a worker and a server: there over four hosts, and back the same way
    found = solve(case("a/r1 8 8", "a/r2 8 8", kinds=(servers, workers)))
    assert found == Optimum((1, 2, 4), (0, 2, 6))


def test_hosts_without_a_rack_are_racks_of_their_own() -> None:
    found = solve(case("a/r1 1", "a/- 1 1", kinds=pods(2)))
    assert found is not None
    assert found.used == (1, 2, 2)


def test_slices_of_slices_have_make_ups_of_make_ups() -> None:
    kinds = (Kind(0, 1000, 1), Kind(1, 1000, 7))
    inner, outer = layers(case("a/r1 8", kinds=kinds, slices=((0, 4), (1, 2))))
    assert inner.makeups == (((1, 1), 1), ((0, 2), 3))
    assert outer.makeups == (((1, 1), 1), ((0, 2), 1))


def test_kueues_example_takes_three_nodes_by_best_fit_and_four_by_least_free_capacity() -> None:
    #  KEP 2724: free 3 3 2 1, seven pods
    cluster = case("a/r1 3 3 2 1", kinds=pods(7))
    assert {name: used(cluster, RULES[name](cluster) or [])[-1] for name in RULES} == {
        "bestfit": 4,
        "kueue": 3,
        "leastfree": 4,
        "hypernode": 4,
        "kai": 4,
    }
    assert answer(cluster).used == (1, 1, 3)


def test_a_rule_that_finds_no_place_says_so() -> None:
    cluster = case("a/r1 4", "a/r2 4", kinds=pods(6), required=1)
    assert all(rule(cluster) is None for rule in RULES.values())
    assert answer(cluster).used is None
    assert solve(cluster) == Optimum(None, None)
