"""docs/dialects.md and the registry tell of the same dialects."""

from pathlib import Path

import pytest

from muster.workloads.dialect import Dialect
from muster.workloads.registry import DIALECTS

PAGE = (Path(__file__).parents[3] / "docs" / "dialects.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: dialect.name)
def test_every_key_and_kind_of_a_dialect_is_documented(dialect: Dialect) -> None:
    assert [key for key in dialect.markers if key not in PAGE] == []
    groups = [watched.group for watched in dialect.watched]
    assert [group for group in groups if group not in PAGE] == []
