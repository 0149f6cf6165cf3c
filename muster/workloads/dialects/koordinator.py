"""Koordinator's gangs (apis/extension/coscheduling.go, network_topology.go).

A gang is named in the annotation ``gang.scheduling.koordinator.sh/name``, with its numbers
beside it on every pod; or by the label ``pod-group.scheduling.sigs.k8s.io``, with a PodGroup
of the old group ``scheduling.sigs.k8s.io`` that carries the same annotations. (Old
coscheduling wrote that label and PodGroup too and is read here.)

**Gang groups.** ``…/groups`` lists gangs, as namespace/name, that are bound together or not
at all. Each repeats the same list; they become one gang with one role for each of them
(``muster.workloads.gangbook``).

**Topology.** ``…/network-topology-spec`` lists layers to gather in. Layers are found among
the cluster's levels by name (``muster.workloads.keys.levels``): the narrowest layer of *MustGather*
is required, of *PreferGather* preferred. ``podCountMultiple`` of a layer asks that its domains hold
multiples of a number; with slices of that size they do.

``mode`` and ``waiting-time`` say what becomes of room that is held while members are missing.
Muster holds none, so they mean nothing here.

**Once satisfied.** With ``…/match-policy: once-satisfied``, which is the default, a gang whose
minimum was met once is complete for ever: each pod that comes later goes alone, though the
first have finished and are gone (pkg/scheduler/plugins/coscheduling/core,
``isGangOnceResourceSatisfied``).
koord-scheduler keeps that in memory, and after a restart goes by the pods that are bound. Muster
does the same, and writes it to the PodGroup's status, as koord-scheduler's controller would::

    "" … ──minMember placed──► Scheduled ──all have ended, minMember well──► Finished

A gang that is written on its pods alone, and whose pods are all gone, is a new one.
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Final

import msgspec

from muster.cluster.ids import GangKey
from muster.cluster.specs.gangspec import GangSpec
from muster.kube import wire
from muster.workloads.dialect import NO_RANK, Member, Watched, gang_key
from muster.workloads.dialects.podgroups import group, number, said
from muster.workloads.keys.labels import overlay, read
from muster.workloads.keys.levels import foreign
from muster.workloads.keys.operatorgroups import is_operators
from muster.workloads.keys.ranks import index, pod_rank
from muster.workloads.status import Fields, GangProgress, GroupStatus

PREFIX: Final = "gang.scheduling.koordinator.sh/"
NAME: Final = PREFIX + "name"
MINIMUM: Final = PREFIX + "min-available"
TOTAL: Final = PREFIX + "total-number"
GROUPS: Final = PREFIX + "groups"
MATCH_POLICY: Final = PREFIX + "match-policy"
ONCE_SATISFIED: Final = "once-satisfied"
SCHEDULER: Final = "koord-scheduler"
_SATISFIED: Final = frozenset({"Scheduled", "Running", "Finished", "Failed"})
TOPOLOGY: Final = PREFIX + "network-topology-spec"
TOPOLOGY_INDEX: Final = PREFIX + "network-topology-index"
_WRITTEN: Final = tuple(
    (name, f"metadata.annotations[{TOPOLOGY}]{of}")
    for name, of in (
        ("required_level", " MustGather"),
        ("preferred_level", " PreferGather"),
        ("slice_level", " layer"),
        ("slice_size", " podCountMultiple"),
    )
)
POD_GROUP: Final = "pod-group.scheduling.sigs.k8s.io"


class PodGroupSpec(wire.Wire, frozen=True):
    """What Muster reads of a PodGroup's spec."""

    min_member: int = 1


class PodGroupStatus(wire.Wire, frozen=True):
    """What Muster reads and writes of a PodGroup's status."""

    phase: str = ""
    scheduled: int = 0


class PodGroup(wire.Wire, frozen=True):
    """scheduling.sigs.k8s.io/v1alpha1 PodGroup."""

    metadata: wire.ObjectMeta = wire.ObjectMeta()
    spec: PodGroupSpec = PodGroupSpec()
    status: PodGroupStatus = PodGroupStatus()


class Rule(wire.Wire, frozen=True):
    """One layer of a network topology specification."""

    layer: str = ""
    strategy: str = ""
    pod_count_multiple: int = 0


class Topology(wire.Wire, frozen=True):
    """What ``network-topology-spec`` says, wide layers first."""

    gather_strategy: tuple[Rule, ...] = ()


def spec(found: PodGroup) -> GangSpec | None:
    """Return the gang of a PodGroup; None for one that was made of an object that says more."""
    if is_operators(found.metadata):
        return None
    plain = group(Koordinator.name, found.metadata, found.spec.min_member)
    laid = _with_annotations(plain, found.metadata)
    return replace(laid, has_run=found.status.phase in _SATISFIED)


def wanted(found: PodGroup, progress: GangProgress) -> Fields:
    """Return the status of a group that was complete once; nothing before."""
    placed, needed = progress.placed, max(found.spec.min_member, 1)
    if placed < needed and found.status.phase not in _SATISFIED:
        return {}
    done = progress.ended and progress.succeeded >= needed
    return {"phase": "Finished" if done else "Scheduled", "scheduled": placed}


def _said(found: PodGroup) -> Fields:
    return {"phase": found.status.phase, "scheduled": found.status.scheduled}


def _gang_of(found: PodGroup) -> GangKey:
    return gang_key(Koordinator.name, found.metadata.namespace, found.metadata.name)


def _from_pod(meta: wire.ObjectMeta, name: str) -> GangSpec:
    minimum, problems = number(said(meta, MINIMUM), f"metadata.annotations[{MINIMUM}]")
    named = msgspec.structs.replace(meta, name=name)
    plain = group(Koordinator.name, named, minimum, field=f"metadata.annotations[{MINIMUM}]")
    return _with_annotations(replace(plain, problems=problems), meta)


def _with_annotations(plain: GangSpec, meta: wire.ObjectMeta) -> GangSpec:
    """Return the gang with what the annotations of its PodGroup or pods add."""
    problems: list[str] = list(plain.problems)
    laid = replace(
        plain,
        size=_size(plain, meta, problems),
        unit=_unit(plain, meta, problems),
        once=said(meta, MATCH_POLICY) in ("", ONCE_SATISFIED),
    )
    laid = _with_topology(laid, meta, problems)
    laid = replace(laid, problems=tuple(problems))
    return overlay(laid, read(meta.labels, meta.annotations))


def _size(plain: GangSpec, meta: wire.ObjectMeta, problems: list[str]) -> int | None:
    text = said(meta, TOTAL)
    if not text:
        return None
    size, wrong = number(text, f"metadata.annotations[{TOTAL}]")
    problems += wrong
    return max(size, plain.min_count)


def _unit(plain: GangSpec, meta: wire.ObjectMeta, problems: list[str]) -> tuple[GangKey, ...]:
    """Return the keys of the gang group in order, nothing for a gang on its own."""
    text = said(meta, GROUPS)
    if not text:
        return ()
    try:
        names = msgspec.json.decode(text, type=list[str])
    except (msgspec.DecodeError, RecursionError):
        names = [""]
    if not all(name.count("/") == 1 and all(name.split("/")) for name in names):
        problems.append(f'metadata.annotations[{GROUPS}]: is not a list of "namespace/name"')
        return ()
    keys = {gang_key(Koordinator.name, *name.split("/")) for name in names} | {plain.key}
    return tuple(sorted(keys)) if len(keys) > 1 else ()


def _with_topology(laid: GangSpec, meta: wire.ObjectMeta, problems: list[str]) -> GangSpec:
    text = said(meta, TOPOLOGY)
    if not text:
        return laid
    try:
        rules = msgspec.json.decode(text, type=Topology).gather_strategy
    except (msgspec.DecodeError, RecursionError) as error:
        problems.append(f"metadata.annotations[{TOPOLOGY}]: {error}")
        return laid
    multiples = [rule for rule in rules if rule.pod_count_multiple > 1]
    counts = [rule.pod_count_multiple for rule in multiples]
    if any(wide % narrow or wide == narrow for wide, narrow in pairwise(counts)):
        problems.append(
            f"metadata.annotations[{TOPOLOGY}]: podCountMultiple of {counts}: write multiples, "
            "that of the widest layer first"
        )
        return laid
    slices = [(foreign(rule.layer), rule.pod_count_multiple) for rule in multiples]
    level, size = slices.pop() if slices else (None, None)
    return replace(
        laid,
        wider_slices=tuple(slices),
        required_level=_narrowest(rules, "MustGather"),
        preferred_level=_narrowest(rules, "PreferGather"),
        slice_size=size,
        slice_level=level,
        written=(*laid.written, *_WRITTEN),
    )


def _narrowest(rules: Sequence[Rule], strategy: str) -> str | None:
    found = [rule.layer for rule in rules if rule.strategy == strategy and rule.layer]
    return foreign(found[-1]) if found else None


class Koordinator:
    """The dialect; stateless."""

    name = "koordinator"
    markers = (NAME, POD_GROUP)
    watched = (
        Watched(
            "scheduling.sigs.k8s.io", "v1alpha1", "podgroups", PodGroup, spec,
            status=GroupStatus(SCHEDULER, _gang_of, wanted, _said),
        ),
    )  # fmt: skip

    def member(self, pod: wire.Pod) -> Member | None:
        """Return the gang that annotation or label names."""
        meta = pod.metadata
        named = said(meta, NAME, POD_GROUP)
        if not named:
            return None
        role = read(meta.labels, meta.annotations).keys.role
        rank = index(meta, TOPOLOGY_INDEX)
        rank = rank if rank != NO_RANK else pod_rank(meta)
        return Member(gang_key(self.name, meta.namespace, named), role, rank)

    def spec_from_pod(self, pod: wire.Pod) -> GangSpec | None:
        """Return what the annotations say, None for a pod whose PodGroup says it."""
        named = said(pod.metadata, NAME)
        return _from_pod(pod.metadata, named) if named else None
