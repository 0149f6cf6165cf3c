"""Which plans count of pods that have no node yet: those that Muster wrote for these very pods.

::

    a pod with a plan, no node ─┬─ older than the key ──────────────────► believed
                                ├─ its seal is right, of a release ─────► counts
                                ├─ its seal is right, of a place ─┬─ the first pod with it: counts
                                │                                 └─ another one ──► a copy
                                └─ its seal is wrong, or there is none ────────────► forged

A plan that does not count is left out of what the other parts read, and taken off the pod
(``extender.releases.forgedplans``). Then it is planned like any pod without a plan. A pod with a
node is not looked at: it takes its room there, whatever its annotation says.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

import msgspec

from extender.engine import Clock
from extender.releases.forgedplans import ForgedPlans
from muster.cluster.ids import PodUid
from muster.kube import names, wire
from muster.kube.translation.planseal import Carrier, Place, PlanKeys, is_sealed_for, place_of
from muster.kube.translation.translate import pod_uid
from muster.kube.writing.podwrites import PodRef
from muster.workloads.registry import speaks_for

REMEMBERED_S: Final = 600.0  # a place that was taken; no later pod may have it (``SKEW_S``)
TIDY: Final = 4_096  # places between two looks at which of them are old


class Unfounded(StrEnum):
    """Why a plan does not count."""

    FORGED = "forged"
    COPIED = "copied"


Report = Callable[[wire.Pod, Unfounded], None]


@dataclass(slots=True)
class PlanChecks:
    """The verdicts on plans, one per pod, and who has which place."""

    keys: PlanKeys
    clock: Clock
    forged: ForgedPlans
    #: called once for each plan that does not count
    report: Report
    #: by pod: the plan that was looked at, and what is wrong with it
    verdicts: dict[PodUid, tuple[str, Unfounded | None]] = field(default_factory=dict)
    _places: dict[Place, tuple[PodUid, float]] = field(default_factory=dict)

    def read(self, uid: PodUid, pod: wire.Pod) -> wire.Pod:
        """Return a pod that has no node, without its plan if that does not count."""
        text = pod.metadata.annotations[names.PLAN]
        known = self.verdicts.get(uid)
        if known is None or known[0] != text:
            known = self.verdicts[uid] = text, self._judge(uid, pod, text)
            if known[1] is not None:
                meta = pod.metadata
                self.forged.put(uid, PodRef(meta.namespace, meta.name, meta.uid))
                self.report(pod, known[1])
        return pod if known[1] is None else _without_plan(pod)

    def drop(self, uid: PodUid) -> None:
        """Forget a pod that is bound or gone; unknown ones are no error."""
        if self.verdicts.pop(uid, None) is not None:
            self.forged.drop(uid)

    def counts(self, pod: wire.Pod) -> bool:
        """Return whether the plan of a pod counts that the watch may not have shown yet."""
        text = pod.metadata.annotations.get(names.PLAN, "")
        uid = pod_uid(pod.metadata.uid)
        carrier = _carrier(pod)
        if not self._is_founded(text, carrier):
            return False
        place = place_of(text, carrier)
        return place is None or self._places.get(place, (uid, 0.0))[0] == uid

    def _judge(self, uid: PodUid, pod: wire.Pod, text: str) -> Unfounded | None:
        carrier = _carrier(pod)
        if not self._is_founded(text, carrier):
            return Unfounded.FORGED
        place = place_of(text, carrier)
        if place is None:
            return None
        if len(self._places) % TIDY == TIDY - 1:
            self._tidy()
        holder, _ = self._places.setdefault(place, (uid, self.clock() + REMEMBERED_S))
        return None if holder == uid else Unfounded.COPIED

    def _is_founded(self, text: str, carrier: Carrier) -> bool:
        return carrier.created <= self.keys.since or is_sealed_for(text, carrier, self.keys)

    def _tidy(self) -> None:
        now = self.clock()
        self._places = {place: it for place, it in self._places.items() if it[1] > now}


def _carrier(pod: wire.Pod) -> Carrier:
    meta, found = pod.metadata, speaks_for(pod)
    gang, number = ("", -1) if found is None else (found[1].key, found[1].rank)
    made = meta.creation_timestamp
    created = 0.0 if made is None else made.timestamp()
    return Carrier(meta.uid, meta.namespace, gang, number, created)


def _without_plan(pod: wire.Pod) -> wire.Pod:
    notes = {key: text for key, text in pod.metadata.annotations.items() if key != names.PLAN}
    meta = msgspec.structs.replace(pod.metadata, annotations=notes)
    return msgspec.structs.replace(pod, metadata=meta)
