"""What people read: every line of it, from replies as the extender sends them."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.cli.ask import views

NOW = 1_800_000_000.0
ROW = {
    "gang": "muster/default/train", "phase": "Admitted", "priority": 5, "queue": "research",
    "min": 8, "size": 8, "waiting": 8, "blocked": 0, "assumed": 0, "released": 0, "bound": 0,
    "leaving": 0, "finished": 0, "submitted_at": NOW - 200, "skips": 3, "reason": "not enough room",
}  # fmt: skip


def gangs(*rows: dict[str, object]) -> list[str]:
    return views.gangs(json.dumps([ROW | row for row in rows]).encode(), NOW).splitlines()


def test_the_state_of_an_extender_fits_on_a_few_lines() -> None:
    reply = {
        "cluster": "prod", "ready": True, "generation": 12345, "nodes": 6500,
        "gangs": {"Pending": 1, "Admitted": 0, "Bound": 2},
        "holds": {"assumed": 0, "released": 0, "confirmed": 0},
        "waiting_for_room": 1, "watch_backlog": 0,
        "queue": {
            "gangs": {"NotEnoughRoom": 1, "MembersMissing": 1},
            "pods": {"NotEnoughRoom": 64, "MembersMissing": 3},
            "oldest_submitted_at": NOW - 300,
        },
        "problems": ["1 gangs run with too few members bound: muster gangs names them"],
    }  # fmt: skip
    assert views.status(json.dumps(reply).encode(), NOW).splitlines() == [
        "Cluster            prod, ready",
        "Nodes              6,500 (generation 12,345)",
        "Gangs              1 pending, 2 bound",
        "Holds              none",
        "Queue              2 gangs with 67 pods wait, the oldest for 5m",
        "  NotEnoughRoom    1 gangs, 64 pods",
        "  MembersMissing   1 gangs, 3 pods",
        "Backlog            0 events to apply",
        "Problem            1 gangs run with too few members bound: muster gangs names them",
    ]
    assert "NOT READY" in views.status(json.dumps(reply | {"ready": False}).encode(), NOW)
    empty = reply | {"queue": {}, "problems": []}
    assert "Queue     nothing waits" in views.status(json.dumps(empty).encode(), NOW)


def test_a_gang_is_one_line_with_its_reason() -> None:
    head, line = gangs({})
    assert head.split() == [
        "GANG",
        "PHASE",
        "PLACED",
        "WAITING",
        "AGE",
        "PRIORITY",
        "QUEUE",
        "REASON",
    ]
    assert line.split(maxsplit=7) == [
        "muster/default/train", "Admitted", "0/8", "8", "3m", "5", "research", "not enough room"
    ]  # fmt: skip


def test_gangs_that_wait_come_first_and_among_them_the_most_urgent() -> None:
    lines = gangs(
        {"gang": "bound", "waiting": 0, "bound": 8, "priority": 9},
        {"gang": "late", "submitted_at": NOW},
        {"gang": "early"},
        {"gang": "urgent", "priority": 7, "submitted_at": NOW},
    )
    assert [line.split()[0] for line in lines[1:]] == ["urgent", "early", "late", "bound"]


def test_an_incomplete_gang_says_what_is_missing() -> None:
    _, line = gangs({"phase": "Pending", "waiting": 3, "blocked": 2, "reason": ""})
    assert line.endswith("not complete: 3 of 8 members, 2 held back by gates of others")


def test_no_gangs_is_said_and_not_left_blank() -> None:
    assert views.gangs(b"[]", NOW).startswith("no gangs")


def test_a_waiting_pod_is_explained_line_by_line() -> None:
    reply = {
        "pod": "default/train-0",
        "gang": ROW,
        "lines": ["waits: not enough room", "remedy: x"],
    }
    assert views.explanation(json.dumps(reply).encode(), NOW).splitlines() == [
        "Pod       default/train-0",
        "Gang      muster/default/train, Admitted, priority 5, queue research",
        "Members   0/8 placed; 8 waiting",
        "Age       3m, looked at 3 times in vain",
        "",
        "waits: not enough room",
        "remedy: x",
    ]


def test_a_planned_pod_shows_where_it_goes() -> None:
    reply = {
        "pod": "default/train-0", "gang": ROW | {"waiting": 0, "released": 8}, "state": "Released",
        "node": "n1", "spares": ["n2"], "rank": 0, "lines": ["Released: node n1"],
    }  # fmt: skip
    text = views.explanation(json.dumps(reply).encode(), NOW)
    assert text.splitlines()[-1] == "Node      n1 (released, rank 0, spare n2)"


def test_a_placed_pod_says_what_is_wrong_with_it() -> None:
    reply = {
        "pod": "default/train-0", "gang": ROW | {"waiting": 0, "bound": 8}, "state": "Confirmed",
        "node": "n1", "lines": ["Confirmed: node n1", "its device GPU-0 on node n1 is unhealthy"],
    }  # fmt: skip
    text = views.explanation(json.dumps(reply).encode(), NOW)
    assert text.splitlines()[-2:] == ["", "its device GPU-0 on node n1 is unhealthy"]


def test_a_gang_with_bad_devices_says_so_unless_it_waits() -> None:
    running = {"phase": "Bound", "waiting": 0, "bound": 8, "unhealthy": 2}
    _, line = gangs(running | {"reason": ""})
    assert line.endswith("2 members have unhealthy devices")
    _, line = gangs(running | {"waiting": 1})
    assert line.endswith("not enough room")


def test_a_pod_that_is_not_ours_says_so() -> None:
    reply = {"pod": "default/web", "node": "n1", "lines": ["not managed by Muster: no gang"]}
    assert views.explanation(json.dumps(reply).encode(), NOW).splitlines() == [
        "Pod    default/web",
        "Node   n1 (bound)",
        "",
        "not managed by Muster: no gang",
    ]


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(-3, "0s"), (59, "59s"), (119, "119s"), (120, "2m"), (7200, "2h0m"), (180_000, "2d2h")],
)
def test_ages_are_short(seconds: float, shown: str) -> None:
    assert views.age(seconds) == shown


@given(st.lists(st.tuples(st.text("ab", max_size=9), st.text("ab", max_size=3)), min_size=1))
def test_columns_never_run_into_each_other(rows: list[tuple[str, str]]) -> None:
    starts = {line.rindex("   ") + 3 for line in views.columns(rows).splitlines()}
    assert len(starts) == 1
