"""Running members of a gang: what is read from one of them holds for its siblings.

::

    the first of alike pods ──► anything to decide? ──yes──► None: each is applied by itself
                                       │ no
                                       ▼
                Sibling: its event, and its dialect ──► each other one: its own rank

Members of a gang differ in name, rank, node, plan and pin. Their bytes show whether two pods differ
in nothing else (``extender.intake.firstlist.members``). Where several gangs are made from one
template, their first members differ in metadata only, so that one is judged for all.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import msgspec

from extender.intake.foreignmembers import ForeignMembers
from extender.intake.operatorgroups import OperatorGroups
from extender.watchover.bypassedpods import passed_webhook
from muster.cluster.events import PlanNote, PodUpserted
from muster.kube import names, wire
from muster.kube.firstlist import ownkeys
from muster.kube.translation.planannotation import plan_note, required_terms, without_pin
from muster.kube.translation.requests import resized_containers
from muster.kube.translation.translate import Translator
from muster.kube.translation.volumes import VolumeIndex, restricts
from muster.workloads.dialect import Member
from muster.workloads.gangbook import GangBook
from muster.workloads.registry import PodMembership, conflicts_as, place, speaks_for


@dataclass(frozen=True, slots=True)
class Sibling:
    """One of a gang's running members, which was judged for all of them."""

    #: the pod that was judged
    pod: wire.Pod
    #: its event; all but UID, node, times, rank and plan holds for each sibling
    event: PodUpserted
    #: its membership; all but the rank holds for each sibling if ``rank`` is given
    placed: PodMembership
    #: returns a sibling's rank; ``None`` if siblings differ in more than the rank
    rank: Callable[[wire.ObjectMeta], int] | None
    #: the keys that ``rank`` reads
    rank_keys: tuple[str, ...] = ()


def planned(meta: wire.ObjectMeta, node: str) -> PlanNote | None:
    """Return the plan of a pod on ``node``; ``None`` if the plan names another node.

    A pod that runs on its planned node needs its spare nodes no longer.
    """
    note = plan_note(meta.annotations.get(names.PLAN, ""))
    return note if note is not None and note.node == node else None


_READ_ALONE: Final = frozenset({names.TERM, names.CHECKPOINTED_AT})


def is_quiet(pod: wire.Pod) -> bool:
    """Return whether a new bound pod of ours needs no attention.

    It passed the webhook, has no condition about its devices (``DeviceReports.arrived``) and says
    nothing of a checkpoint.
    """
    reports = any(condition.type == names.DEVICES_HEALTHY for condition in pod.status.conditions)
    speaks = reports or names.CHECKPOINTED_AT in pod.metadata.annotations
    return passed_webhook(pod) and not speaks


class Siblings:
    """Judges members of gangs that run already."""

    def __init__(
        self,
        translator: Translator,
        volumes: VolumeIndex,
        book: GangBook,
        foreign: ForeignMembers,
        groups: OperatorGroups,
    ) -> None:
        self._translator = translator
        self._volumes = volumes
        self._book = book
        self._foreign = foreign
        self._groups = groups

    def judge(self, pod: wire.Pod) -> Sibling | None:
        """Judge a bound pod with a plan, for its siblings, too.

        Returns ``None`` if there is something to decide, so that each is applied by itself.
        """
        placed = self._placed(pod) if self._is_plain(pod) else None
        if placed is None:
            return None
        event = self.event(pod, self._book.resolve(placed.member))
        return None if event.finished or event.terminating else _sibling(pod, event, placed)

    def judge_as(self, like: Sibling, meta: wire.ObjectMeta, node: str) -> Sibling | None:
        """Judge a pod that differs from ``like.pod`` only in its metadata and node.

        It belongs to another gang of the same template. All but its metadata was judged with
        ``like``. Its pin names ``node``, as the pin of ``like.pod`` names the node of that pod.
        """
        pod = msgspec.structs.replace(like.pod, metadata=meta)
        if meta.annotations.keys() & _READ_ALONE or planned(meta, node) is None:
            return None
        placed = self._placed(pod)
        if placed is None:
            return None
        member = self._book.resolve(placed.member)
        event = self._translator.event_as(
            like.event, meta, node, gang=member.key, role=member.role, rank=member.rank
        )
        return _sibling(pod, event, placed)

    def _placed(self, pod: wire.Pod) -> PodMembership | None:
        """Return a pod's place in its gang, ``None`` where something is to be decided."""
        placed = place(pod, self._groups.is_owned)
        if placed is None or placed.member.template is not None:
            return None
        key = self._book.resolve(placed.member).key
        return None if conflicts_as(pod, placed) or self._foreign.of(key) else placed

    def event(self, pod: wire.Pod, member: Member) -> PodUpserted:
        """Return the event of a managed pod that is ``member`` of its gang."""
        return self._translator.pod_event(
            pod,
            gang=member.key,
            role=member.role,
            rank=member.rank,
            managed=True,
            volumes=self._volumes,
        )

    def member(self, like: Sibling, meta: wire.ObjectMeta) -> Member | None:
        """Return a sibling's own membership; ``None`` if it is in another gang after all."""
        theirs = like.placed.member
        if like.rank is not None:
            return self._book.resolve(Member(theirs.key, theirs.role, like.rank(meta)))
        pod = wire.Pod(metadata=meta, spec=like.pod.spec, status=like.pod.status)
        found = speaks_for(pod, self._groups.is_owned)
        if found is None or found[0] is not like.placed.dialect:
            return None
        own = found[1]
        same = own.key == theirs.key and own.role == theirs.role and own.template is None
        return self._book.resolve(own) if same else None

    def _is_plain(self, pod: wire.Pod) -> bool:
        """Return whether a pod's requests depend on nothing that only this pod has."""
        if not is_quiet(pod) or names.TERM in pod.metadata.annotations or ownkeys.select(pod):
            return False
        if any(map(restricts, pod.spec.volumes)) or resized_containers(pod.spec, pod.status):
            return False
        note = planned(pod.metadata, pod.spec.node_name)
        return note is not None and without_pin(required_terms(pod.spec.affinity), note) is None


def _sibling(pod: wire.Pod, event: PodUpserted, placed: PodMembership) -> Sibling:
    ranked = placed.ranked
    if ranked is None:
        return Sibling(pod, event, placed, None)
    return Sibling(pod, event, placed, ranked.rank, ranked.rank_keys)
