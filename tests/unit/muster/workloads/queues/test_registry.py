"""Which kinds describe queues."""

from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.workloads.queues.registry import FILES, KINDS, QueueKind

PAGE = Path(__file__).parents[5] / "docs" / "design" / "queues.md"


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: f"{kind.plural}.{kind.group}")
def test_an_object_with_nothing_but_a_name_can_be_read(kind: QueueKind) -> None:  # type: ignore[type-arg]
    text = b'{"metadata": {"name": "a", "namespace": "b"}, "unknown": {"field": 1}}'
    reading = kind.read(msgspec.json.decode(text, type=kind.type))
    assert {spec.name for spec in reading.specs if not spec.is_open} == set()


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: f"{kind.plural}.{kind.group}")
def test_each_kind_is_on_the_page_about_queues(kind: QueueKind) -> None:  # type: ignore[type-arg]
    page = PAGE.read_text(encoding="utf-8")
    assert all(f"{kind.group}/{version}" in page for version in kind.versions)


def test_no_kind_is_listed_twice() -> None:
    assert len({(kind.group, kind.plural) for kind in KINDS}) == len(KINDS)


@given(st.text())
def test_any_text_can_be_read(text: str) -> None:
    for file in FILES:
        file.read(text, 0.0)
