"""Where a gang could go, domain by domain, as a person reads it.

::

    block a ── rack r1 ── n1 n2 n3        8 GPUs each
            └─ rack r2 ── n4 n5:4
    block b ── rack r3 ── n6
    (no rack)  ────────── n7
"""

import pytest
from support.clusters.scene import BLOCK, RACK, Scene

from muster.cluster.ids import GangKey
from muster.cluster.resumable import run
from muster.placement.question import Question
from muster.placement.reasons.perdomain import Candidates, candidates


@pytest.fixture
def scene() -> Scene:
    return Scene("""
        a/r1  n1 n2 n3
        a/r2  n4 n5:4
        b/r3  n6
        b/-   n7
    """)


def found(
    scene: Scene, key: GangKey, *, refused: tuple[str, ...] = (), kept: tuple[str, ...] = ()
) -> Candidates:
    answer = run(candidates(scene.state.snapshot(), Question(key, refused=refused, kept=kept)))
    assert answer is not None
    return answer


def rows(answer: Candidates) -> list[tuple[str, int, int, int, int, int]]:
    return [(r.domain, r.nodes, r.suitable, r.fits, r.free, r.total) for r in answer.rows]


def test_the_required_level_decides_and_the_roomiest_domain_comes_first(scene: Scene) -> None:
    scene.run("n1")
    answer = found(scene, scene.gang("g", 4, required_level=RACK))
    assert (answer.level, answer.required, answer.needed) == (RACK, True, 4)
    assert answer.resource == "nvidia.com/gpu"
    assert rows(answer) == [
        ("a/r1", 3, 2, 2, 16, 24),
        ("a/r2", 2, 1, 1, 12, 12),
        ("b/r3", 1, 1, 1, 8, 8),
    ]


def test_without_a_required_level_the_preferred_one_is_shown_and_says_so(scene: Scene) -> None:
    answer = found(scene, scene.gang("g", 4, preferred_level=BLOCK))
    assert (answer.level, answer.required) == (BLOCK, False)
    assert [(row.domain, row.fits) for row in answer.rows] == [("a", 4), ("b", 2)]


def test_without_any_wish_racks_are_shown_and_nodes_without_one_are_in_none(scene: Scene) -> None:
    answer = found(scene, scene.gang("g", 2))
    assert answer.level == RACK
    assert sum(row.nodes for row in answer.rows) == 6


def test_where_hosts_are_the_only_level_the_cluster_is_one_row() -> None:
    scene = Scene("-/- n1 n2", levels=("kubernetes.io/hostname",))
    answer = found(scene, scene.gang("g", 3))
    assert (answer.level, rows(answer)) == ("cluster", [("cluster", 2, 2, 2, 16, 16)])


def test_nodes_that_are_refused_or_kept_for_others_are_not_suitable(scene: Scene) -> None:
    key = scene.gang("g", 2, required_level=RACK)
    answer = found(scene, key, refused=("n1",), kept=("n2",))
    assert [(r.domain, r.suitable) for r in answer.rows if r.domain == "a/r1"] == [("a/r1", 1)]


def test_beside_members_that_are_placed_only_their_domain_counts(scene: Scene) -> None:
    key = scene.gang("g", 3, 4, members=2, required_level=RACK)
    scene.run("n4", gang=key)
    assert [(row.domain, row.fits) for row in found(scene, key).rows] == [
        ("a/r2", 1),
        ("a/r1", 0),
        ("b/r3", 0),
    ]


def test_a_gang_that_is_not_complete_has_no_candidates(scene: Scene) -> None:
    key = scene.gang("g", 4, members=2)
    assert run(candidates(scene.state.snapshot(), Question(key))) is None
