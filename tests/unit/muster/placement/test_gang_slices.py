"""How often a plan pauses: by the size of the cluster, between its steps."""

from support.clusters.builders import grid
from support.clusters.scene import Scene, pod_class

from muster.cluster.resumable import FEW
from muster.placement.gang import plan
from muster.placement.question import Question


def pauses(racks: int) -> int:
    """Return how often the plan of a lone pod pauses on so many racks of 32 nodes."""
    scene = Scene("")
    for node in grid(1, racks, 32):
        scene.state.apply(node, now=0.0)
    key = scene.gang("job", 1, like=pod_class(1))
    scene.snapshot.topology  # noqa: B018  built, so that it does not pause
    return sum(1 for _ in plan(scene.snapshot, Question(key)))


def test_a_plan_on_many_nodes_pauses_between_the_steps_of_its_phases() -> None:
    most = FEW // 32
    few, many = pauses(most), pauses(most + 1)
    assert few > 0
    assert many > few + 5
