"""Members of a gang that run: what is read of one of them holds for its siblings.

::

    the first of alike pods ──► anything to decide? ──yes──► None: each goes its own way
                                       │ no
                                       ▼
                Sibling: its event, and its dialect ──► each other one: its own rank

Members of a gang differ in name, rank, node, plan and pin. Whether two pods differ in nothing else
is seen in their bytes (``extender.intake.firstlist.members``). Where gangs are made of one
template, the first member of one stands for the first of the next in all but its metadata.
"""

from collections.abc import Callable
from dataclasses import dataclass

import msgspec

from extender.intake.foreignmembers import Outsiders
from extender.intake.operatorgroups import OperatorGroups
from extender.watchover.bypassedpods import was_seen
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
    """One of a gang's running members, which stands for the others."""

    pod: wire.Pod
    #: All of it but UID, node, times, rank and plan holds for each sibling.
    event: PodUpserted
    placed: PodMembership
    #: Returns a sibling's rank; ``None`` where more than the rank sets siblings apart.
    rank: Callable[[wire.ObjectMeta], int] | None
    #: The keys that ``rank`` looks at.
    rank_keys: tuple[str, ...] = ()


def planned(meta: wire.ObjectMeta, node: str) -> PlanNote | None:
    """Return the plan of a pod on ``node``; ``None`` if the plan names another node.

    A pod that runs where it was planned has no use for its spares any more.
    """
    note = plan_note(meta.annotations.get(names.PLAN, ""))
    return note if note is not None and note.node == node else None


def is_quiet(pod: wire.Pod) -> bool:
    """Return whether there is nothing to do for a bound pod of ours that is seen first.

    It came by the webhook, and says nothing of its devices (``Feed.arrived``).
    """
    says = any(condition.type == names.DEVICES_HEALTHY for condition in pod.status.conditions)
    return was_seen(pod) and not says


class Siblings:
    """Judges members of gangs that run already."""

    def __init__(
        self,
        translator: Translator,
        volumes: VolumeIndex,
        book: GangBook,
        outsiders: Outsiders,
        groups: OperatorGroups,
    ) -> None:
        self._translator = translator
        self._volumes = volumes
        self._book = book
        self._outsiders = outsiders
        self._groups = groups

    def judge(self, pod: wire.Pod) -> Sibling | None:
        """Return what holds for the siblings of a bound pod with a plan, too.

        ``None``: there is something to decide, so each of them goes its own way.
        """
        placed = self._placed(pod) if self._is_plain(pod) else None
        if placed is None:
            return None
        event = self.event(pod, self._book.seat(placed.member))
        return None if event.finished or event.terminating else _sibling(pod, event, placed)

    def judge_as(self, like: Sibling, meta: wire.ObjectMeta, node: str) -> Sibling | None:
        """Return the same for a pod that differs from ``like.pod`` in these two only.

        It is of another gang of the same template: all but its metadata has been judged, and its
        pin names ``node`` where the pin of ``like.pod`` names that one's node.
        """
        pod = msgspec.structs.replace(like.pod, metadata=meta)
        if names.TERM in meta.annotations or planned(meta, node) is None:
            return None
        placed = self._placed(pod)
        if placed is None:
            return None
        member = self._book.seat(placed.member)
        event = self._translator.event_as(
            like.event, meta, node, gang=member.key, role=member.role, rank=member.rank
        )
        return _sibling(pod, event, placed)

    def _placed(self, pod: wire.Pod) -> PodMembership | None:
        """Return a pod's place in its gang, ``None`` where something is to be decided."""
        placed = place(pod, self._groups.is_owned)
        if placed is None or placed.member.template is not None:
            return None
        key = self._book.seat(placed.member).key
        return None if conflicts_as(pod, placed) or self._outsiders.of(key) else placed

    def event(self, pod: wire.Pod, member: Member) -> PodUpserted:
        """Return the event of a pod that is Muster's, in its place."""
        return self._translator.pod_event(
            pod,
            gang=member.key,
            role=member.role,
            rank=member.rank,
            managed=True,
            volumes=self._volumes,
        )

    def member(self, like: Sibling, meta: wire.ObjectMeta) -> Member | None:
        """Return a sibling's own place; ``None`` if it is in another gang after all."""
        theirs = like.placed.member
        if like.rank is not None:
            return self._book.seat(Member(theirs.key, theirs.role, like.rank(meta)))
        pod = wire.Pod(metadata=meta, spec=like.pod.spec, status=like.pod.status)
        found = speaks_for(pod, self._groups.is_owned)
        if found is None or found[0] is not like.placed.dialect:
            return None
        own = found[1]
        same = own.key == theirs.key and own.role == theirs.role and own.template is None
        return self._book.seat(own) if same else None

    def _is_plain(self, pod: wire.Pod) -> bool:
        """Return whether nothing of a pod's own decides what it asks for."""
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
