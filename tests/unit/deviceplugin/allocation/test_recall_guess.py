"""What is taken over by names alone after a start, where one name has several ids."""

from dataclasses import replace

from support.devices.handshakes import GPU, SHAPES, stocks

from deviceplugin.allocation.table import Table
from deviceplugin.allocation.values import ContainerAsk, ListedDevices, NodePod, PodStage

SHARED = "nvidia.com/gpu.shared"


def running(uid: str) -> NodePod:
    ask = ContainerAsk(name="main", amounts={SHARED: 2}, passes_on=False)
    return NodePod(
        uid=uid, namespace="default", name=uid, batch=0, created=0.0, containers=(ask,),
        plan=None, problem="", life=PodStage.RUNNING,
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


def test_an_init_container_that_starts_is_not_refused_for_what_was_not_known_of_it() -> None:
    """Published was what the kubelet lists: the containers after it, not the third GPU it had."""
    table = Table()
    shown = {each.resource: each for each in stocks(frozenset())}
    table.stock(shown.values(), None)
    first, second, third, *_ = shown[GPU].offers
    table.pod(heavy := replace(running("a"), containers=SHAPES["heavy"], life=PodStage.WAITING))
    table.recall(heavy.uid, {GPU: (second.name, third.name)})
    rows = [
        ListedDevices("default", "a", container, GPU, frozenset({each.id}))
        for container, each in (("a", second), ("b", third))
    ]
    table.listed(rows, table.serial)
    table.starting(GPU, (first.id, second.id, third.id))
    assert table.given() == {"a": {GPU: tuple(sorted((first.name, second.name, third.name)))}}
    table.starting(GPU, (second.id,))
    table.starting(GPU, (third.id,))
    table.validate()


def test_another_share_is_guessed_where_the_guessed_one_turns_out_to_be_another_pods() -> None:
    """A kubelet that has just started lists a and not yet b: both have a share of one GPU."""
    table = Table()
    shown = {each.resource: each for each in stocks(frozenset())}
    table.stock(shown.values(), None)
    name = shown[SHARED].offers[0].name
    first, second, *_ = [each.id for each in shown[SHARED].offers if each.name == name]
    for uid in ("a", "b"):
        table.pod(running(uid))
        table.recall(uid, {SHARED: (name,)})
    assert table.ids_in_use() == {first, second}
    for guessed in (second, first):
        row = ListedDevices("default", "a", "main", SHARED, frozenset({guessed}))
        table.listed([row], table.serial, "new")
        assert table.given() == {"a": {SHARED: (name,)}, "b": {SHARED: (name,)}}
        table.validate()
    table.pod(replace(running("c"), life=PodStage.WAITING))
    table.allocate(SHARED, [*sorted(table.ids_in_use() - {first}), "gpu6::3"])
    assert table.given().keys() == {"a", "b", "c"}
    table.validate()


def test_what_is_recalled_after_the_first_list_stays_until_the_kubelet_lists_the_pod() -> None:
    table = Table()
    table.stock(stocks(frozenset()), None)
    table.pod(running("a"))
    table.listed([], table.serial, "new")
    table.recall("a", {SHARED: ("gpu6",)})
    table.listed([], table.serial, "new")
    assert table.given() == {"a": {SHARED: ("gpu6",)}}
    table.listed([ListedDevices("default", "a")], table.serial, "new")
    table.listed([], table.serial, "new")
    assert table.given() == {}
