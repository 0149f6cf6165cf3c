"""The tree of queues and one queue as people read them."""

import msgspec

from muster.apiwire.queues import CellUse, QueueDetail, QueueRow, QueueUse, WaitingGang
from muster.cli.ask import queueviews

GPU = "nvidia.com/gpu"


def _use(used: int, entitled: int | None, limit: int | None = None, **more: str) -> CellUse:
    return CellUse(
        GPU,
        used=str(used),
        entitled=None if entitled is None else str(entitled),
        borrowed=str(max(used - (entitled or used), 0)),
        limit=None if limit is None else str(limit),
        available="4",
        **more,
    )


def _shown(*rows: QueueRow, wide: bool = False) -> list[str]:
    return queueviews.queues(msgspec.json.encode(rows), wide=wide).splitlines()


def test_the_tree_shows_who_is_below_whom_and_how_full_each_is() -> None:
    lines = _shown(
        QueueRow("muster/cluster", uses=(_use(12, 16),)),
        QueueRow("muster/a", "muster/cluster", 1, uses=(_use(8, 8),)),
        QueueRow("muster/b", "muster/a", 2, waiting=3, uses=(_use(6, 4, 8),)),
        QueueRow("muster/c", "muster/cluster", 1, problem="closed", uses=(_use(2, 8),)),
    )

    assert [line.split("   ")[0] for line in lines[1:]] == [
        "muster/cluster", "├─ a", "│  └─ b", "└─ c",
    ]  # fmt: skip
    assert [line.count("█") for line in lines[1:]] == [12, 16, 16, 4]
    assert lines[3].split()[-6:] == ["4", "2", "8", "4", "3", "gangs"]
    assert lines[4].endswith("STOPPED")


def test_accelerators_are_shown_unless_all_resources_are_asked_for() -> None:
    memory = CellUse("memory", used=str(2 << 30), entitled=str(8 << 30), available=None)
    row = QueueRow("muster/a", uses=(memory, _use(1, 8)))

    assert len(_shown(row)) == 2
    (_, first, second) = _shown(row, wide=True)
    assert first.split()[1:4] == ["memory", "████░░░░░░░░░░░░", "2Gi"]
    assert second.split()[:1] == ["gpu"]


def test_a_resource_of_two_flavors_has_a_line_for_each() -> None:
    uses = (_use(1, 8, flavor="spot"), _use(2, 8, flavor="owned"))

    lines = _shown(QueueRow("kueue/a", uses=uses))

    assert "gpu (spot)" in lines[1]
    assert "gpu (owned)" in lines[2]


def test_without_queues_it_says_what_decides_then() -> None:
    assert _shown() == ["no queues: gangs go by priority, then by arrival (docs/queues.md)"]


def test_one_queue_shows_who_waits_in_which_order_and_why() -> None:
    waiting = (
        WaitingGang(
            "muster/ns/big", 1, 2, 880.0, 16, "it asks for 16", 1300.0, 1300.0, "it starts by 12:00"
        ),
        WaitingGang("muster/ns/small", 2, 0, 0.0, 1, "not enough room"),
    )
    row = QueueRow("muster/a", "muster/cluster", 1, 2.0, True, pods=1200, uses=(_use(1, 8),))

    text = queueviews.queue(msgspec.json.encode(QueueDetail(row, waiting)), 1000.0)

    assert "strict: nobody passes the first" in text
    assert "1,200 are counted" in text
    first, second = (" ".join(line.split()) for line in text.splitlines()[-2:])
    assert first == "1 muster/ns/big 16 2 2m 5m it starts by 12:00"
    assert second == "2 muster/ns/small 1 0 - - not enough room"


def test_an_empty_queue_says_that_nobody_waits() -> None:
    text = queueviews.queue(msgspec.json.encode(QueueDetail(QueueRow("muster/a"))), 0.0)

    assert text.endswith("nobody waits")


def test_averages_are_a_column_only_where_past_use_counts() -> None:
    (head, line) = _shown(QueueRow("muster/a", uses=(_use(1, 8),)))
    assert "AVERAGE" not in head
    past = {"average": "6500m", "average_borrowed": "2"}
    (head, line) = _shown(QueueRow("muster/a", uses=(_use(1, 8, **past),)))
    assert head.split()[2:4] == ["USED", "AVERAGE"]
    assert "6.5, 2.0 borrowed" in line
    (_, line) = _shown(QueueRow("muster/a", uses=(_use(1, 8, average="0", average_borrowed="0"),)))
    assert line.split()[4:5] == ["0.0"]


def test_a_queue_that_goes_by_its_users_shows_what_they_used() -> None:
    users = (
        QueueUse("team/main", 2.0, {"nvidia.com/gpu": "6500m"}),
        QueueUse("lab/main", 1.0, {"nvidia.com/gpu": "8"}),
    )
    found = QueueDetail(QueueRow("kueue/a", uses=(_use(1, 8),)), (), users)
    text = queueviews.queue(msgspec.json.encode(found), 0.0)
    assert [line.split() for line in text.splitlines() if "main" in line] == [
        ["team/main", "2", "6500m", "nvidia.com/gpu"],
        ["lab/main", "1", "8", "nvidia.com/gpu"],
    ]
