"""SIGUSR2 from inside: one private file per request, and never the end of the process.

::

    rack r1 ── n0 n1 n2 n3        8 GPUs each; `small` takes two, `large` does not fit
"""

import asyncio
import logging
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from support.clusters.planners import Bench
from support.extenders.extenders import until

from extender.config.settings import Dumps, ExtenderConfig
from extender.readapi.dump import StateDumper
from extender.readapi.dumpfile import DumpFile, prune
from extender.readapi.dumprequests import PERIOD_S
from extender.timeslice import Pace
from muster.cluster.dump.container import frame
from muster.cluster.effects import CapacityFreed
from muster.cluster.resumable import Steps
from muster.cluster.snapshot import Snapshot
from muster.decisions.record import AnswerKind, outcome
from muster.decisions.replay import Recording, ReplayVerdict, rerun
from muster.placement import gang as gang_placement
from muster.placement.decision import Decision, Plan, WaitReason
from muster.placement.question import Question
from muster.placement.request import Rows

NAME = "muster-test-extender-0-20261121T083709.000000Z.muster"


class Wall:
    """A wall clock that is a second later at every look."""

    def __init__(self) -> None:
        self.now = 1_795_250_228.0

    def __call__(self) -> float:
        self.now += 1.0
        return self.now


def bench(directory: Path | None, **dump: object) -> Bench:
    where = None if directory is None else str(directory)
    settings = Dumps(directory=where, **dump)  # type: ignore[arg-type]
    made = Bench(ExtenderConfig(spare_count=1, assembly_window_seconds=0, dump=settings))
    for index in range(4):
        made.node(f"n{index}")
    return made


def dumper(of: Bench, *, leads: bool = True) -> StateDumper:
    pace = Pace(of._tick)
    return StateDumper(
        of.engine, of.planner, of.config, of.dumps, lambda: leads, lambda: True, pace, Wall()
    )


def files(directory: Path, pattern: str = "*") -> list[Path]:
    return sorted(directory.glob(pattern))


async def dumped(of: Bench) -> Recording:
    path = await dumper(of).dump()
    assert path is not None
    return Recording(path.read_bytes())


def reruns(recording: Recording) -> list[tuple[str, bool, str]]:
    """Return (gang, decided before, outcome) of every entry; all must be identical."""
    found = []
    for each in recording.entries:
        state = recording.state(each.entry.state)
        state.validate()
        again = rerun(each, state.snapshot())
        assert again.verdict is ReplayVerdict.IDENTICAL, again.difference
        name = each.entry.question.gang.rpartition("/")[2]
        found.append((name, each.entry.made, str(outcome(again.answer))))
    return found


async def test_a_dump_is_private_and_named_by_cluster_replica_and_time(tmp_path: Path) -> None:
    path = await dumper(bench(tmp_path)).dump()
    assert path == tmp_path / NAME
    assert path.stat().st_mode & 0o777 == 0o600
    assert files(tmp_path) == [path]


async def test_what_waits_is_asked_now_and_what_was_decided_keeps_its_own_state(
    tmp_path: Path,
) -> None:
    it = bench(tmp_path)
    it.gang("small", 2, at=1.0)
    it.gang("large", 3, at=2.0)
    await it.planner.settle()
    it.gang("next", 1, at=3.0)
    assert reruns(await dumped(it)) == [
        ("large", False, "wait"),
        ("next", False, "plan"),
        ("large", True, "wait"),
        ("small", True, "plan"),
    ]


async def test_a_gang_that_is_looked_at_in_vain_again_and_again_is_kept_once(
    tmp_path: Path,
) -> None:
    it = bench(tmp_path)
    it.gang("small", 2, at=1.0)
    large = it.gang("large", 3, at=2.0)
    for _ in range(20):
        await it.planner.settle()
        it.member(large, 3)
        it.worklist.notice(CapacityFreed())
    assert [name for name, made, _ in reruns(await dumped(it)) if made] == ["large", "small"]


async def test_a_standby_knows_the_cluster_and_what_it_would_decide(tmp_path: Path) -> None:
    it = bench(tmp_path)
    it.gang("small", 2)
    path = await dumper(it, leads=False).dump()
    assert path is not None
    recording = Recording(path.read_bytes())
    assert not recording.source.leads
    assert reruns(recording) == [("small", False, "plan")]


async def test_of_plans_and_of_refusals_no_more_are_kept_than_wanted(tmp_path: Path) -> None:
    it = bench(tmp_path, keep_decisions=1)
    for at, (name, size) in enumerate([("one", 1), ("two", 1), ("three", 9), ("four", 9)]):
        it.gang(name, size, at=1.0 + at)
    await it.planner.settle()
    assert [name for name, made, _ in reruns(await dumped(it)) if made] == ["four", "two"]


async def test_nothing_is_kept_where_nothing_is_wanted(tmp_path: Path) -> None:
    it = bench(tmp_path, keep_decisions=0)
    it.gang("one", 1)
    await it.planner.settle()
    assert reruns(await dumped(it)) == []


async def test_without_time_to_answer_the_questions_are_recorded_all_the_same(
    tmp_path: Path,
) -> None:
    it = bench(tmp_path, answer_seconds=0)
    it.gang("large", 5)
    recording = await dumped(it)
    (entry,) = recording.entries
    again = rerun(entry, recording.state(0).snapshot())
    assert (again.verdict, outcome(again.answer)) == (ReplayVerdict.UNRECORDED, AnswerKind.WAIT)


async def test_signals_that_come_while_a_dump_is_written_are_answered_by_it(
    tmp_path: Path,
) -> None:
    it = bench(tmp_path)
    it.gang("large", 5)
    one = dumper(it)
    running = asyncio.create_task(one.run())
    one.request()
    await asyncio.sleep(0)
    assert one._writing
    for _ in range(5):
        one.request()
    await until(lambda: not one._writing)
    assert (len(files(tmp_path)), one._requests._asked.is_set()) == (1, False)
    one.request()
    await until(lambda: len(files(tmp_path, "*.muster")) == 2)
    running.cancel()


def careless(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make a defect: a search that puts all members on the node of the first."""
    search = gang_placement.plan

    def plan(
        snapshot: Snapshot, question: Question, members: Rows | None = None
    ) -> Steps[Decision]:
        found = yield from search(snapshot, question, members)
        return replace(found, nodes=found.nodes * 0) if isinstance(found, Plan) else found

    monkeypatch.setattr(gang_placement, "plan", plan)


def refused(caplog: pytest.LogCaptureFixture) -> list[str]:
    """Return what the log lines about refused plans say of a dump."""
    return [one.dump for one in caplog.records if one.message == "plan refused"]  # type: ignore[attr-defined]


async def test_a_plan_that_breaks_a_rule_waits_and_leaves_a_dump_that_shows_it_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    it = bench(tmp_path)
    careless(monkeypatch)
    pair = it.gang("pair", 2, at=1.0)
    await it.planner.settle()  # no file keeps it waiting: nobody writes yet
    view = it.view(pair)
    assert (len(view.waiting), len(view.assumed), len(view.released)) == (2, 0, 0)
    assert it.planner.why(view) == "UnsoundPlan"
    (named,) = refused(caplog)
    running = asyncio.create_task(dumper(it).run())
    await until(lambda: len(files(tmp_path, "*.muster")) == 1)
    running.cancel()
    (file,) = files(tmp_path, "*.muster")
    assert str(file) == named
    recording = Recording(file.read_bytes())
    assert reruns(recording) == [("pair", False, "wait"), ("pair", True, "wait")]
    again = [
        rerun(each, recording.state(each.entry.state).snapshot()).answer
        for each in recording.entries
    ]
    assert {getattr(each, "reason", None) for each in again} == {WaitReason.UNSOUND_PLAN}


async def test_plans_that_break_a_rule_leave_one_dump_in_ten_minutes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    it = bench(tmp_path, keep_files=3)
    careless(monkeypatch)
    it.gang("pair", 2, at=1.0)
    running = asyncio.create_task(dumper(it).run())

    def named() -> list[str]:
        return [one for one in refused(caplog) if one.startswith(str(tmp_path))]

    for _ in range(45):  # it is tried again each minute
        await it.planner.settle()
        await until(lambda: sorted(map(str, files(tmp_path, "*.muster"))) == named()[-3:])
        it.now += PERIOD_S / 10
    running.cancel()
    assert (len(named()), len(refused(caplog))) == (5, 45)


async def test_without_a_directory_the_log_says_why_there_is_no_dump_of_a_refused_plan(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    it = bench(None)
    careless(monkeypatch)
    it.gang("pair", 2)
    await it.planner.settle()
    assert refused(caplog) == ["none: dump.directory is not set in the configuration"]


async def test_only_the_newest_files_stay(tmp_path: Path) -> None:
    it = bench(tmp_path, keep_files=2)
    one = dumper(it)
    (tmp_path / "notes.txt").write_text("of somebody else")
    killed = DumpFile(tmp_path, NAME)
    killed._file.close()
    made = [await one.dump() for _ in range(4)]
    assert files(tmp_path) == [*made[2:], tmp_path / "notes.txt"]
    assert not files(tmp_path, ".*")


@pytest.mark.parametrize(
    ("directory", "why"),
    [
        (None, "dump.directory is not set"),
        ("nowhere", "No such file or directory"),
        ("a-file", "Not a directory"),
    ],
)
async def test_a_dump_that_cannot_be_written_is_told_and_nothing_else_happens(
    directory: str | None, why: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "a-file").touch()
    it = bench(None if directory is None else tmp_path / directory)
    assert await dumper(it).dump() is None
    (record,) = [one for one in caplog.records if one.levelno >= logging.ERROR]
    assert why in record.getMessage() + getattr(record, "error", "")
    it.gang("small", 2, at=1.0)
    await it.planner.settle()
    assert it.released


async def test_a_directory_that_is_missing_is_told_at_the_start(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    running = asyncio.create_task(dumper(bench(tmp_path / "nowhere")).run())
    await asyncio.sleep(0)
    running.cancel()
    assert [one.getMessage() for one in caplog.records if one.levelno == logging.WARNING] == [
        "dump.directory cannot be written to; SIGUSR2 will not help"
    ]


def test_a_file_whose_directory_vanishes_leaves_nothing_and_can_be_given_up(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "dumps"
    folder.mkdir()
    file = DumpFile(folder, NAME)
    file.write(frame(b"something"))
    shutil.rmtree(folder)
    with pytest.raises(OSError, match="No such file"):
        file.finish()
    file.discard()


def test_a_file_that_is_given_up_is_not_there(tmp_path: Path) -> None:
    file = DumpFile(tmp_path, NAME)
    file.write(frame(b"something"))
    file.discard()
    assert files(tmp_path) == []


def test_tidying_up_survives_an_empty_directory(tmp_path: Path) -> None:
    prune(tmp_path, 3)
    assert files(tmp_path) == []
