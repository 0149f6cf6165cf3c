"""What is taken over by names alone after a start, where one name has several ids."""

from support.handshakes import stocks

from deviceplugin.allocation.table import Table
from deviceplugin.allocation.values import ContainerAsk, Life, NodePod

SHARED = "nvidia.com/gpu.shared"


def running(uid: str) -> NodePod:
    ask = ContainerAsk(name="main", amounts={SHARED: 2}, passes_on=False)
    return NodePod(
        uid=uid, namespace="default", name=uid, batch=0, created=0.0, containers=(ask,),
        plan=None, problem="", life=Life.RUNNING,
    )  # fmt: skip


def test_a_container_that_starts_anew_is_not_refused_for_a_wrong_guess_of_its_shares() -> None:
    """The annotation says that it has two shares of one GPU, not which."""
    table = Table()
    shown = {each.resource: each for each in stocks(frozenset())}
    table.stock(shown.values(), None)
    name = shown[SHARED].offers[0].name
    first, second, third, *_ = [each.id for each in shown[SHARED].offers if each.name == name]
    table.pod(running("a"))
    table.recall("a", {SHARED: (name, name)})
    assert table.ids_in_use() == {first, second}
    table.starting(SHARED, (second, third))
    assert table.ids_in_use() == {second, third}
    table.validate()
