"""Who speaks for a pod that could belong to several gangs, and what asking costs."""

import itertools
from dataclasses import dataclass, field

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.pods.wirepods import pod

from muster.cluster.specs.gangspec import GangSpec
from muster.kube import wire
from muster.workloads import registry
from muster.workloads.dialect import Member
from muster.workloads.keys.ranks import COMPLETION_INDEX

NATIVE = "native"
LABELS = {
    "muster": {"muster.dev/gang": "g", "muster.dev/gang-size": "2"},
    "volcano": {"scheduling.k8s.io/group-name": "g"},
    "kueue": {"kueue.x-k8s.io/pod-group-name": "g"},
    "kai": {"pod-group-name": "g"},
    "koordinator": {"gang.scheduling.koordinator.sh/name": "g"},
    "coscheduling": {"scheduling.x-k8s.io/pod-group": "g"},
    "lightweight": {"pod-group.scheduling.sigs.k8s.io/name": "g"},
    "yunikorn": {"applicationId": "g", "yunikorn.apache.org/task-group-name": "t"},
    "jobset": {"jobset.sigs.k8s.io/jobset-name": "g"},
    "job": {COMPLETION_INDEX: "0"},
}
ORDER = (NATIVE, *LABELS)
OWNERS = ("jobset", "job")
PAIRS = list(itertools.combinations(ORDER, 2))


def torn(*dialects: str) -> wire.Pod:
    """Return a pod that speaks all these dialects."""
    labels = {k: v for name in dialects for k, v in LABELS.get(name, {}).items()}
    made = pod(labels=labels, owner=("batch/v1", "Job", "g"))
    if NATIVE not in dialects:
        return made
    group = wire.SchedulingGroup(pod_group_name="g")
    return msgspec.structs.replace(
        made, spec=msgspec.structs.replace(made.spec, scheduling_group=group)
    )


@pytest.mark.parametrize(("first", "second"), PAIRS)
def test_of_two_dialects_the_one_that_stands_first_speaks(first: str, second: str) -> None:
    placed = registry.place(torn(second, first))
    assert placed is not None
    assert placed.dialect.name == first
    assert placed.explicit is (first != "job")


@pytest.mark.parametrize(("first", "second"), PAIRS)
def test_two_explicit_groups_are_a_conflict_and_an_owner_is_none(first: str, second: str) -> None:
    found = registry.conflicts(torn(first, second))
    if second in OWNERS:
        assert found == []
    else:
        (text,) = found
        assert text == f"pod belongs to gang {first}/team-a/g; {second}/team-a/g is ignored"


@given(st.sets(st.sampled_from(ORDER)))
def test_one_pass_says_the_same_as_asking_every_dialect(spoken: set[str]) -> None:
    speaker = torn(*spoken)
    asked = [d for d in registry.DIALECTS if d.member(speaker) is not None]
    placed = registry.place(speaker)
    if not asked:
        assert placed is None
        return
    assert placed is not None
    assert placed.dialect is asked[0]
    assert placed.member == asked[0].member(speaker) == registry.member(speaker)
    assert placed.spec == asked[0].spec_from_pod(speaker) == registry.spec_from_pod(speaker)
    assert registry.names_a_group(speaker) is placed.explicit


@dataclass
class _Loud:
    """A dialect that notes when it is asked."""

    name: str = "loud"
    markers: tuple[str, ...] = ("example.com/loud",)
    watched: tuple[()] = ()
    asked: list[str] = field(default_factory=list)

    def member(self, pod: wire.Pod) -> Member | None:
        self.asked.append(pod.metadata.name)
        return None

    def spec_from_pod(self, _pod: wire.Pod) -> GangSpec | None:
        return None


def test_a_dialect_is_not_asked_about_pods_that_carry_none_of_its_keys(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    loud = _Loud()
    monkeypatch.setattr(registry, "DIALECTS", (*registry.DIALECTS, loud))
    by_key = {**registry._BY_KEY, "example.com/loud": frozenset({len(registry.DIALECTS) - 1})}
    monkeypatch.setattr(registry, "_BY_KEY", by_key)
    monkeypatch.setattr(registry, "_KEYS", frozenset(by_key))
    registry.place(pod("without", labels={"app": "web", **LABELS["coscheduling"]}))
    registry.place(pod("with", annotations={"example.com/loud": ""}))
    assert loud.asked == ["with"]


def test_every_dialect_is_found_by_a_key_or_always_asked() -> None:
    found = {n for numbers in registry._BY_KEY.values() for n in numbers}
    assert found | registry._ALWAYS == set(range(len(registry.DIALECTS)))
    names = [dialect.name for dialect in registry.DIALECTS]
    assert len(set(names)) == len(names)


def test_muster_keys_of_the_group_are_reported_as_unread_on_pods_of_any_pod_group() -> None:
    for dialect in ("volcano", "kai", "coscheduling"):
        member = pod(labels={**LABELS[dialect], "muster.dev/topology-required": "rack"})
        (text,) = registry.unread(member)
        assert text.endswith('"rack" is not read here: put it on the PodGroup')
    kueue = pod(labels={**LABELS["kueue"], "muster.dev/topology-required": "rack"})
    assert list(registry.unread(kueue)) == []
