"""`muster replay`: what is printed, and what the exit code says.

::

    rack r1 ── n0 n1        8 GPUs each; `runs` has n0, `waits` needs both hosts of a rack,
    rack r2 ── n2           `goes` needs one host
"""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from support.clusters.builders import LEVELS, NOW, RACK, apply, gang_key, gang_spec, node, pod
from support.clusters.recordings import SOURCE, asked, question, recorded, taken, written

from muster.cli.main import main
from muster.cluster.events import GangUpserted
from muster.cluster.ids import GangKey
from muster.cluster.state import ClusterState
from muster.decisions.recording import LastDecision, Note, RecordingInput
from muster.kube.names import PLAN_GATE

RUNS, WAITS, GOES = (gang_key(name) for name in ("runs", "waits", "goes"))


def cluster() -> ClusterState:
    state = ClusterState("lab", levels=LEVELS, gate=PLAN_GATE)
    apply(state, node("n0", rack="r1"), node("n1", rack="r1"), node("n2", rack="r2"))
    apply(state, GangUpserted(gang_spec("runs", 1)), pod("runs-0", gang="runs", on="n0", rank=0))
    wide = gang_spec("waits", 2, required_level=RACK)
    waits = [pod(f"waits-{i}", gang="waits", rank=i, created=NOW - 300) for i in range(2)]
    apply(state, GangUpserted(wide), *waits)
    goes = pod("goes-0", gang="goes", rank=0, created=NOW - 60)
    apply(state, GangUpserted(gang_spec("goes", 1)), goes)
    return state


def noted(key: GangKey) -> Note:
    said = LastDecision("wait", "no domain of the required level has room", 3)
    return Note("parked", None, said) if key == WAITS else Note("to do")


SUMMARY = """\
Dump             lab.muster, Muster 0.1.0
From             muster-extender-0 (leader), 2026-11-21 08:37:09 UTC
Cluster          lab, generation 10
Nodes            3: 3 ready
nvidia.com/gpu   24: 8 used, 16 free
Pods             4: 3 waiting, 1 bound
Gangs            1 bound, 2 admitted
Levels           topology.kubernetes.io/zone > muster.dev/block > muster.dev/rack > host
Settings         pin auto, 1 spare per pod, window 0.2 s

GANG              PLACED   WAITS   AGE   PRIORITY   DECISION   WHY                                        REPLAY
muster/ns/waits   0/2      2       5m    0          wait       no domain of the required level has room   identical
muster/ns/goes    0/1      1       60s   0          plan       1 pod: 1 zone, 1 block, 1 rack, 1 host     identical

Decided before, asked again of the cluster as it was then:
DECIDED   GANG             GENERATION   DECISION   WHY                                      REPLAY
30s ago   muster/ns/goes   10           plan       1 pod: 1 zone, 1 block, 1 rack, 1 host   identical

3 decisions asked again: all identical
"""  # noqa: E501  as it is printed


@pytest.fixture
def state() -> ClusterState:
    return cluster()


def saved(folder: Path, what: RecordingInput) -> str:
    path = folder / "lab.muster"
    path.write_bytes(written(what))
    return str(path)


@pytest.fixture
def dump(tmp_path: Path, state: ClusterState) -> str:
    made = [asked(state.snapshot(), question(GOES, NOW - 30))]
    return saved(tmp_path, taken(state, NOW, made, note=noted))


def test_a_dump_is_summed_up_and_every_decision_asked_again(
    dump: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["replay", dump]) == 0
    assert capsys.readouterr().out == SUMMARY


def test_one_gang_is_explained_in_full(dump: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["replay", dump, "--gang", "ns/waits"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "Gang      muster/ns/waits, Admitted, priority 0",
        "Members   0/2 placed; 2 waiting",
        "Age       5m",
        (
            "Planner   parked until room appears, last answer wait, "
            "'no domain of the required level has room', 7 generations before"
        ),
        "Replay    identical",
        "",
        "muster/ns/waits waits: no domain of the required level has room",
        "0 of 2 racks have room for 2 members of 8 nvidia.com/gpu each",
        "the nearest, rack r1, has room for 1, lacks 8 nvidia.com/gpu",
        "  held by muster/ns/runs: 8 (priority 0, 1 pod)",
        "2 of 3 nodes can take one more member now",
        "  1 removed by insufficient resource (nvidia.com/gpu)",
        "remedy: goes when 8 more nvidia.com/gpu are free in r1",
        "",
        "Room by rack (the members must share one):",
        "RACK   MEMBERS   NODES   SUITABLE   FREE nvidia.com/gpu",
        "r1     1 of 2    2       1          8 of 16",
        "r2     1 of 2    1       1          8 of 8",
    ]


def test_of_a_gang_that_is_placed_it_is_said_where_it_stands(
    dump: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["replay", dump, "--gang", "ns/runs"]) == 0
    assert capsys.readouterr().out.splitlines()[-4:] == [
        "no member waits, and its decision is too old to be recorded (dump.keepDecisions)",
        "",
        "RACK   NODE   PODS",
        "r1     n0     1",
    ]
    assert main(["replay", dump, "--gang", "ns/runs", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["nodes"] == [
        {"domain": "r1", "node": "n0", "pods": 1}
    ]


def test_a_gang_may_be_thought_away(dump: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["replay", dump, "--gang", str(WAITS), "--without-gang", "ns/runs"]) == 0
    said = capsys.readouterr().out
    assert "What if   without muster/ns/runs (pods on nodes: 1)" in said
    assert "muster/ns/waits goes: 2 members on 1 zone, 1 block, 1 rack, 2 hosts" in said


def test_json_has_every_pod_of_a_plan_and_every_domain(
    dump: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["replay", dump, "--gang", "ns/goes", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["cluster"], found["identical"], found["different"]) == ("lab", 2, 0)
    now, before = found["decisions"]
    assert (now["made_before_the_dump"], before["made_before_the_dump"]) == (False, True)
    assert now["answer"]["outcome"] == "plan"
    assert [(one["pod"], one["rank"]) for one in now["pods"]] == [("ns/goes-0", 0)]
    assert {row["domain"] for row in now["candidates"]["rows"]} == {"r1", "r2"}


def test_a_decision_that_is_not_the_recorded_one_is_pointed_at_and_exits_1(
    tmp_path: Path, state: ClusterState, capsys: pytest.CaptureFixture[str]
) -> None:
    honest = asked(state.snapshot(), question(WAITS, NOW))
    apply(state, node("n3", rack="r2"))
    other = asked(state.snapshot(), question(WAITS, NOW))
    path = saved(tmp_path, taken(state, NOW, [replace(honest, answer=other.answer)]))
    assert main(["replay", path]) == 1
    assert capsys.readouterr().out.splitlines()[-3:] == [
        "3 decisions asked again: 1 DIFFERENT",
        '  muster/ns/waits: outcome: recorded "plan", now "wait"',
        "Another version of Muster may decide otherwise; the same one may not: a bug",
    ]


def test_a_gang_that_would_go_and_is_parked_is_pointed_at(
    tmp_path: Path, state: ClusterState, capsys: pytest.CaptureFixture[str]
) -> None:
    apply(state, node("n3", rack="r2"))
    assert main(["replay", saved(tmp_path, taken(state, NOW, note=noted))]) == 0
    assert (
        "muster/ns/waits would be placed now (2 pods: 1 zone, 1 block, 1 rack, 2 host), yet parked "
        "until room appears, last answer wait, 'no domain of the required level has room', "
        "8 generations before"
    ) in capsys.readouterr().out.splitlines()


def test_what_a_standby_and_an_unlisted_cluster_mean_is_said(
    tmp_path: Path, state: ClusterState, capsys: pytest.CaptureFixture[str]
) -> None:
    source = replace(SOURCE, leads=False, listed=False)
    assert main(["replay", saved(tmp_path, taken(state, NOW, source=source))]) == 0
    said = capsys.readouterr().out
    assert "muster-extender-0 (standby: it plans nothing)" in said
    assert "generation 10, NOT YET LISTED: much may be missing" in said


def test_answers_there_was_no_time_for_are_not_called_identical(
    tmp_path: Path, state: ClusterState, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["replay", saved(tmp_path, taken(state, NOW, may_ask=lambda: False))]) == 0
    said = capsys.readouterr().out
    assert "0 decisions asked again: all identical" in said
    assert "2 more were not recorded, for want of time (dump.answerSeconds)" in said


def test_an_empty_cluster_has_a_dump_too(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    empty = ClusterState("lab", levels=LEVELS, gate=PLAN_GATE)
    assert main(["replay", saved(tmp_path, taken(empty, NOW))]) == 0
    assert "no gang waits for anything" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--gang", "ns/nobody"], "gang 'ns/nobody': is not in the dump; it has muster/ns/goes"),
        (
            ["--gang", "ns/runs", "--without-gang", "ns/goes"],
            "gang muster/ns/runs: no member waits, so nothing would be decided about it",
        ),
        (["--without-gang", "ns/runs"], "name with --gang the gang to decide about"),
        (
            ["--gang", "ns/goes", "--without-gang", "ns/goes"],
            "--without-gang muster/ns/goes: is the gang that is asked about",
        ),
    ],
)
def test_a_question_that_has_no_answer_is_said_in_one_line(
    arguments: list[str], message: str, dump: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["replay", dump, *arguments]) == 1
    said = capsys.readouterr().err
    assert message in said
    assert said.count("\n") == 1


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "not a dump of Muster: it does not begin as one; name a file that the extender's"),
        (b"PK\x03\x04 something else", "not a dump of Muster"),
        (b"muster-cluster\n\0\x09\0\0\0", "written in format 9, and this muster reads format 5"),
        (b"muster-clu", "cut off: it ends after 10 bytes; copy it again, or send SIGUSR2"),
    ],
)
def test_a_foreign_file_is_refused_with_what_to_do_and_exits_2(
    content: bytes, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "some.file"
    path.write_bytes(content)
    assert main(["replay", str(path)]) == 2
    said = capsys.readouterr().err
    assert f"muster: {path}: {message}" in said
    assert said.count("\n") == 1


def test_a_file_that_is_not_there_exits_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["replay", str(tmp_path / "none.muster")]) == 2
    assert "none.muster: cannot be read: No such file or directory" in capsys.readouterr().err


def test_a_file_cut_off_anywhere_is_refused(
    tmp_path: Path, state: ClusterState, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = written(taken(state, NOW))
    path = tmp_path / "lab.muster"
    for at in range(0, len(whole), 97):
        path.write_bytes(whole[:at])
        assert main(["replay", str(path)]) == 2
        assert capsys.readouterr().err.startswith(f"muster: {path}: ")


def test_a_file_altered_anywhere_is_refused_or_says_the_same(
    tmp_path: Path, state: ClusterState, capsys: pytest.CaptureFixture[str]
) -> None:
    """The same: a run of zeros may be compressed in several ways."""
    whole = written(taken(state, NOW))
    path = tmp_path / "lab.muster"
    path.write_bytes(whole)
    main(["replay", str(path)])
    said = capsys.readouterr().out
    for at in range(0, len(whole), 97):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 0x5A]) + whole[at + 1 :])
        code = main(["replay", str(path)])
        found = capsys.readouterr()
        assert (code, found.out) == (0, said) or (code, found.out) == (2, "")


def test_a_dump_of_a_state_alone_is_no_recording(
    tmp_path: Path, state: ClusterState, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "state.muster"
    path.write_bytes(state.dump())
    assert main(["replay", str(path)]) == 2
    assert "not a" in capsys.readouterr().err


def test_states_of_earlier_decisions_cost_what_differs(state: ClusterState) -> None:
    made = []
    for number in range(8):
        made.append(asked(state.snapshot(), question(WAITS, NOW)))
        apply(state, node(f"more-{number}", rack="r9"))
    alone, together = written(taken(state, NOW)), written(taken(state, NOW, made))
    assert len(together) < 3 * len(alone)
    assert [each.entry.state for each in recorded(taken(state, NOW, made)).entries] == [
        *(0, 0),
        *range(1, 9),
    ]
