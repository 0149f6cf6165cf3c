import pytest

from muster.vni.addresses import address, capacity, place_of, slot
from muster.vni.book import ChosenVni, Exhausted, VniBook
from muster.vni.pools import JobNetworkPool, Range, inner_mtu, judge, problems

JOBS = JobNetworkPool("jobs", Range(1000, 2000), federation=Range(1, 999), made="1")


def test_the_default_pool_beside_the_federations_share_is_good() -> None:
    assert list(problems(JOBS)) == []
    assert len(JOBS.range) == 1001


@pytest.mark.parametrize(
    ("pool", "text"),
    [
        (JobNetworkPool("p", Range(0, 9)), "spec.range 0-9: allowed are 1 to 16777215"),
        (JobNetworkPool("p", Range(9, 8)), "the first not above the last"),
        (JobNetworkPool("p", Range(1, 1 << 24)), "spec.range"),
        (JobNetworkPool("p", Range(5000, 5001), Range(1, 4096)), "1-4096: allowed are 1 to 4095"),
        (JobNetworkPool("p", Range(10, 20), Range(1, 10)), "1-10 overlaps with spec.range 10-20"),
        (JobNetworkPool("p", Range(1, 2), subnet="10.0.0.1/8"), "has host bits set"),
        (JobNetworkPool("p", Range(1, 2), subnet="10.0.0.1/32"), "has no address for a pod"),
        (JobNetworkPool("p", Range(1, 2), mtu=500), "spec.mtu 500"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_with_field_and_value(pool: JobNetworkPool, text: str) -> None:
    assert text in "; ".join(problems(pool))


@pytest.mark.parametrize(
    "other",
    [
        JobNetworkPool("x", Range(2000, 3000), made="2"),
        JobNetworkPool("x", Range(500, 600), made="2"),  # in the share that jobs leaves
        JobNetworkPool("x", Range(3000, 3001), Range(999, 1001), made="2"),
    ],
)
def test_of_two_pools_that_overlap_the_older_is_used(other: JobNetworkPool) -> None:
    found = judge([other, JOBS])
    assert found["jobs"] == ""
    assert "of pool jobs" in found["x"]


def test_pools_may_leave_the_same_share_to_the_federation() -> None:
    other = JobNetworkPool("x", Range(3000, 4000), federation=Range(1, 999), made="2")
    assert judge([JOBS, other]) == {"jobs": "", "x": ""}


def test_a_pool_that_is_not_used_stands_in_nobodys_way() -> None:
    bad = JobNetworkPool("bad", Range(2000, 3000), made="2")
    third = JobNetworkPool("third", Range(2500, 2600), made="3")
    assert judge([third, bad, JOBS]) == {"jobs": "", "bad": judge([JOBS, bad])["bad"], "third": ""}


def test_what_is_left_of_an_underlay() -> None:
    assert (inner_mtu(1500), inner_mtu(9000), inner_mtu(1500, v6=True)) == (1450, 8950, 1430)


def test_a_member_has_the_address_of_its_rank_and_else_the_lowest_free_one() -> None:
    subnet = JOBS.network()
    assert address(subnet, 0) == "198.18.0.1/15"
    assert place_of(subnet, "198.18.0.1/15") == 0
    assert slot(3, {0, 1}, subnet) == 3
    assert slot(1, {0, 1, 3}, subnet) == 2
    assert slot(-1, {0}, subnet) == 1
    small = JobNetworkPool("p", Range(1, 1), subnet="10.0.0.0/30").network()
    assert capacity(small) == 2
    assert slot(5, {0}, small) == 1
    assert slot(0, {0, 1}, small) is None
    assert place_of(small, "10.0.0.3/30") is None
    assert place_of(small, "10.9.0.1/30") is None
    assert place_of(small, "nonsense") is None


def test_every_place_has_an_address_of_its_own_that_says_which() -> None:
    for text in ("10.0.0.0/28", "fd00::/124"):
        subnet = JobNetworkPool("p", Range(1, 1), subnet=text).network()
        made = [address(subnet, place) for place in range(capacity(subnet))]
        assert len(set(made)) == len(made)
        assert [place_of(subnet, each) for each in made] == list(range(capacity(subnet)))


def test_numbers_go_round_so_that_the_one_freed_last_is_given_last() -> None:
    book, pool = VniBook(), JobNetworkPool("p", Range(1, 3))
    given = []
    for number in range(4):
        chosen = book.choose((pool,))
        assert isinstance(chosen, ChosenVni)
        given.append(chosen.vni)
        book.claim(chosen.vni, f"muster/default/{number}", "p")  # type: ignore[arg-type]
        book.made(chosen.vni)
        book.leaving(chosen.vni)
        book.gone(chosen.vni)
    assert given == [1, 2, 3, 1]


def test_what_pods_use_is_not_given_though_no_object_says_so() -> None:
    book, pool = VniBook(), JobNetworkPool("p", Range(1, 2))
    assert book.choose((pool,), {1}) == ChosenVni(2, pool)
    found = book.choose((pool,), {1, 2})
    assert found == Exhausted("no VNI free in pool p (0 of 2 used)")


def test_an_empty_pool_says_how_many_there_are() -> None:
    book, pools = VniBook(), (JobNetworkPool("p", Range(1, 1)), JobNetworkPool("q", Range(2, 2)))
    for vni, pool in ((1, "p"), (2, "q")):
        book.claim(vni, f"muster/default/{vni}", pool)  # type: ignore[arg-type]
    found = book.choose(pools)
    assert found == Exhausted("no VNI free in pool p (1 of 1 used), nor in pool q (1 of 1 used)")
