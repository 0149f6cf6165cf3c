"""Who wrote a status last, as the API server noted it."""

import pytest
from support.pods.manifest import read

from muster.workloads.queues.statusmeta import StatusMeta, is_ours

OURS = "muster-extender (pod-7)"
THEIRS = "kueue"


def entry(manager: str, second: int, field: str = "status") -> str:
    time = f"2026-03-01T00:00:{second:02d}Z"
    fields = f'{{"f:{field}": {{"f:x": {{}}}}}}'
    return f"{{manager: {manager}, time: {time}, fieldsV1: {fields}}}"


@pytest.mark.parametrize(
    ("entries", "ours"),
    [
        ([], True),
        ([entry(OURS, 1)], True),
        ([entry(THEIRS, 1)], False),
        ([entry(THEIRS, 1), entry(OURS, 2)], True),
        ([entry(OURS, 1), entry(THEIRS, 2)], False),
        ([entry(OURS, 1), entry(THEIRS, 1)], False),
        ([entry(OURS, 1), entry(THEIRS, 2, "spec")], True),
        ([entry("muster-extender", 3), entry(THEIRS, 2)], True),
        ([entry("muster-extender-of-others", 3)], False),
    ],
)
def test_the_newest_writer_of_a_status_has_it(entries: list[str], *, ours: bool) -> None:
    meta = read(f"managedFields: [{', '.join(entries)}]", StatusMeta)
    assert is_ours(meta, "muster-extender") is ours
