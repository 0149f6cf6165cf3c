"""Run times that were learned: a restart at every step forgets only what is not kept.

::

    learn ─► learn ─► learn ─► …            one leader, for ever
      │        │        │
      └─ write, read ───┴─ …                a new leader after each step: the same estimates
"""

import json
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st
from support.clusters import gangviews

from muster.cluster.ids import GangKey
from muster.cluster.quota.queuespec import QueueName
from muster.cluster.specs.gangspec import GangSpec
from muster.cluster.tables.gangview import GangView
from muster.queueing.backfill.pastruns import KEPT, PastRun, PastRuns, past_run
from muster.queueing.backfill.runtimes import RunTimes, template_of
from muster.workloads.queues.averages.writtenruns import WrittenRun, run_times, written_runs

QUEUES = {"a": QueueName("muster/a"), "b": QueueName("muster/b")}
QUANTILE = 0.9


def gang(queue: str, namespace: str, name: str) -> GangView:
    spec = GangSpec(GangKey(f"muster/{namespace}/{name}"), namespace, name, "muster", 1)
    return replace(gangviews.gang(name), key=spec.key, spec=spec, queue=queue)


GANGS = [
    gang(queue, namespace, f"{name}-{number}")
    for number, queue in enumerate("ab")
    for namespace in ("lab", "team")
    for name in ("eval", "train")
]
#: (gang, how long it ran, time until the next one ends): several may end in one second
STEP = st.tuples(
    st.sampled_from(GANGS), st.floats(0, 5_000), st.sampled_from([0.0, 0.4, 1.0, 90.0])
)
Step = tuple[GangView, float, float]


def restarted(before: RunTimes, now: float) -> RunTimes:
    """Return what the next leader knows: what the objects of the queues say."""
    found = RunTimes(QUANTILE)
    for text, queue in QUEUES.items():
        written = run_times(None, [WrittenRun(*run) for run in before.kept(queue)], now)
        said = written_runs(json.loads(json.dumps({"runTimes": written})))
        if said is not None:
            found.restore(queue, text, (PastRun(*run) for run in said.last))
    return found


def learn(times: RunTimes, step: Step, now: float) -> None:
    view, seconds, _ = step
    times.learn(view, seconds, now, QUEUES[view.queue])


def estimates(times: RunTimes) -> list[float | None]:
    return [times.of(view) for view in GANGS]


@given(st.lists(STEP, max_size=KEPT))
def test_a_restart_at_every_step_leaves_every_estimate_as_it_is(steps: list[Step]) -> None:
    always, now = RunTimes(QUANTILE), 1_000_000.5
    renewed = always
    for step in steps:
        learn(always, step, now)
        if renewed is not always:
            learn(renewed, step, now)
        renewed = restarted(renewed, now)
        assert estimates(renewed) == estimates(always)
        now += step[2]


@given(st.lists(STEP, min_size=KEPT, max_size=3 * KEPT), st.sets(st.integers(0, 3 * KEPT)))
def test_of_more_runs_than_are_kept_the_last_ones_survive(
    steps: list[Step], restarts: set[int]
) -> None:
    """As if the last 32 of each queue had been all, however often leaders changed before."""
    times, runs, now = RunTimes(QUANTILE), PastRuns(), 1_000_000.5
    ends: dict[str, list[tuple[PastRun, float, GangView]]] = {"a": [], "b": []}
    for number, step in enumerate(steps):
        view, seconds, pause = step
        learn(times, step, now)
        assert view.spec is not None
        run = past_run(view.spec.namespace, template_of(view.spec.name), seconds, now)
        runs.note(QUEUES[view.queue], run)
        ends[view.queue].append((run, now, view))
        if number in restarts:
            times = restarted(times, now)
        now += pause
    expected = RunTimes(QUANTILE)
    for text, queue in QUEUES.items():
        last = sorted(ends[text], key=lambda one: one[0])[-KEPT:]
        assert list(times.kept(queue)) == [run for run, _, _ in last] == list(runs.of(queue))
        for run, at, view in last:
            expected.learn(view, run.seconds, at, queue)
    assert estimates(restarted(times, now)) == estimates(expected)


RUNS = st.lists(
    st.builds(
        PastRun,
        st.integers(0, 9), st.integers(0, 3), st.just("team"), st.sampled_from(["eval", "train"]),
    ),
    max_size=KEPT,
)  # fmt: skip


@given(RUNS, RUNS)
def test_it_makes_no_difference_how_often_and_in_which_order_lists_are_read(
    one: list[PastRun], other: list[PastRun]
) -> None:
    queue, found = QUEUES["a"], []
    for lists in ((one, other), (other, one), (one, other, one, other)):
        runs = PastRuns()
        new = [run for written in lists for run in runs.restore(queue, written)]
        found.append(list(runs.of(queue)))
        assert len(new) >= len(runs.of(queue))
    assert found[0] == found[1] == found[2]
    assert found[0] == sorted(found[0])


@given(RUNS)
def test_a_leader_learns_nothing_from_what_it_wrote_itself(noted: list[PastRun]) -> None:
    queue, runs = QUEUES["a"], PastRuns()
    for run in noted:
        runs.note(queue, run)
    assert runs.restore(queue, list(runs.of(queue))) == []
    assert sorted(noted) == list(runs.of(queue))
