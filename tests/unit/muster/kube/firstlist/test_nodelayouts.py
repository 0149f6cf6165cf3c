"""Structs that are made of columns."""

from itertools import repeat

import pytest

from muster.kube import wire
from muster.kube.firstlist.nodelayouts import _structs

META, SPEC, STATUS = wire.ObjectMeta(name="n"), wire.NodeSpec(), wire.NodeStatus()


def test_columns_are_told_apart_by_name_and_not_by_order() -> None:
    columns = {"status": repeat(STATUS), "spec": [SPEC], "metadata": [META]}
    assert list(_structs(wire.Node, **columns)) == [wire.Node(META, SPEC, STATUS)]


@pytest.mark.parametrize(
    "columns", [{"spec": []}, {"metadata": [], "spec": [], "status": [], "x": []}]
)
def test_a_field_without_a_column_and_a_column_without_a_field_are_refused(
    columns: dict[str, list[object]],
) -> None:
    with pytest.raises(TypeError, match="Node: "):
        _structs(wire.Node, **columns)
