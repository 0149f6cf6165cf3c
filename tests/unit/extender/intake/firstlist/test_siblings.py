"""Pods that count as siblings say the same of their gang, in every dialect."""

from typing import Any

import msgspec
import orjson
import pytest
from support.dialects.dialectcases import Case, load_all

from extender.intake.firstlist.siblings import planned
from muster.kube import names, wire
from muster.kube.firstlist.ownkeys import shared
from muster.workloads.registry import place

POD = msgspec.json.Decoder(wire.Pod)


def members(case: Case) -> list[wire.Pod]:
    made = [
        msgspec.to_builtins(one) | {"metadata": one["metadata"] | {"uid": f"uid-{number}"}}
        for number, one in enumerate(case.objects)
    ]
    for one in made:
        one["metadata"].setdefault("namespace", "ns")
    return [POD.decode(orjson.dumps(pod)) for pod in case.members("ns", made)]


@pytest.mark.parametrize("case", load_all(), ids=lambda case: case.name)
def test_what_siblings_do_not_share_says_nothing_but_their_ranks(case: Case) -> None:
    said: dict[str, tuple[Any, ...]] = {}
    for pod in members(case):
        placed = place(pod)
        if placed is None:
            continue
        member = placed.member
        own = placed.dialect.name, member.key, member.role, member.template, placed.spec
        assert said.setdefault(repr(shared(pod.metadata)), own) == own


def test_some_dialect_has_siblings_of_several_ranks() -> None:
    pods = [pod for case in load_all() for pod in members(case)]
    alike: dict[str, set[int]] = {}
    for pod in pods:
        placed = place(pod)
        if placed is not None:
            alike.setdefault(repr(shared(pod.metadata)), set()).add(placed.member.rank)
    assert max(map(len, alike.values())) > 2


def test_a_plan_counts_where_the_pod_is_whatever_its_spares() -> None:
    def meta(plan: str) -> wire.ObjectMeta:
        return wire.ObjectMeta(annotations={names.PLAN: plan})

    assert planned(meta('{"id":"p","node":"n1"}'), "n1") is not None
    assert planned(meta('{"id":"p","node":"n1"}'), "n2") is None
    assert planned(meta('{"id":"p","node":"n1","spares":["n2"]}'), "n1") is not None
    assert planned(meta('{"id":"p","node":"n1","spares":["n2"]}'), "n2") is None
    assert planned(meta("{"), "n1") is None
    assert planned(wire.ObjectMeta(), "n1") is None
