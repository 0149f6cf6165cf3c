"""Any stream on any side: in order, whole, never over a host's GPUs, never later than need be."""

from hypothesis import given, settings
from hypothesis import strategies as st

from loadtest.traces.fleet import Fleet, Host
from loadtest.traces.gangtrace.audit import Audited, Faults
from loadtest.traces.gangtrace.muster import Muster
from loadtest.traces.gangtrace.replay import Log, Side, replay
from loadtest.traces.gangtrace.rules import BestFit, FirstFit, Pool, Spread
from loadtest.traces.gangtrace.stream import Stream
from loadtest.traces.trace import Job

# agg-1: r1 (h0 h1 h2)  r2 (h3)   agg-2: r3 (h4 h5), eight GPUs each
RACKS = ("r1", "r1", "r1", "r2", "r3", "r3")
FLEET = Fleet(
    "six hosts",
    tuple(
        Host(f"h{i}", "core", "agg-1" if i < 4 else "agg-2", rack) for i, rack in enumerate(RACKS)
    ),
)
SIZES = (1, 1, 1, 2, 4, 8, 12, 16, 24, 32)

jobs = st.lists(
    st.tuples(st.sampled_from(SIZES), st.integers(0, 6), st.integers(1, 40)),
    min_size=1,
    max_size=25,
)


def stream_of(drawn: list[tuple[int, int, int]]) -> Stream:
    now, made = 0, []
    for number, (gpus, gap, duration) in enumerate(drawn):
        now += gap
        made.append(Job(f"j{number}", "t", gpus, float(now), float(duration)))
    return Stream(tuple(made), warm=0, span=float(now + 1), speedup=1.0)


def sides() -> list[Side]:
    return [BestFit(FLEET, 1), FirstFit(FLEET, 1), Spread(FLEET, 1), Muster(FLEET, check_every=1)]


def used(stream: Stream, log: Log, at: float, before: int) -> list[int]:
    """Return GPUs in use per host just before ``at`` ends anything, of the jobs before one."""
    found = [0] * len(FLEET.hosts)
    for job, start, hosts in zip(
        stream.jobs[:before], log.starts[:before], log.hosts[:before], strict=True
    ):
        if start < at <= start + job.duration:
            for host in hosts:
                found[host] += job.gpus_per_pod
    return found


@settings(max_examples=40, deadline=None)
@given(jobs)
def test_gangs_start_in_order_whole_and_within_the_hosts(drawn: list[tuple[int, int, int]]) -> None:
    stream = stream_of(drawn)
    for side in sides():
        audited = Audited(side, FLEET)
        log = replay(stream, audited)
        assert audited.faults == Faults(0, 0, 0)
        assert log.starts == sorted(log.starts)
        for job, start, hosts in zip(stream.jobs, log.starts, log.hosts, strict=True):
            assert start >= job.arrival
            assert len(hosts) == job.pods
        for moment in (start + 0.5 for start in log.starts):
            assert max(used(stream, log, moment, len(stream.jobs))) <= 8


@settings(max_examples=40, deadline=None)
@given(jobs)
def test_a_head_waits_only_while_its_pods_do_not_fit(drawn: list[tuple[int, int, int]]) -> None:
    stream = stream_of(drawn)
    for side in sides():
        log = replay(stream, side)
        for i, job in enumerate(stream.jobs):
            start, turn = log.starts[i], log.starts[i - 1] if i else 0.0
            if start > max(job.arrival, turn):
                free = [8 - each for each in used(stream, log, start, i)]
                assert sum(each // job.gpus_per_pod for each in free) < job.pods


@settings(max_examples=40, deadline=None)
@given(jobs)
def test_nobody_starts_a_job_before_the_pool_does(drawn: list[tuple[int, int, int]]) -> None:
    stream = stream_of(drawn)
    floor = replay(stream, Pool(FLEET)).starts
    for side in sides():
        starts = replay(stream, side).starts
        assert all(ours >= least for ours, least in zip(starts, floor, strict=True))
