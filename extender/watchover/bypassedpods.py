"""Pods that slipped past admission while no webhook answered: found and reported.

The webhook fails open (``webhook.registration.configurations``), so an outage lets pods in as they
were written. The API server has no list of them, but a pod shows whether it passed the webhook::

    a pod of ours ─┬─ our gate, a plan pinned into it under a gate, a ledger ──► in order
                   ├─ older than the webhook's configuration ──────────────────► in order
                   └─ neither ─┬─ names a scheduler that would have been replaced: reported
                               ├─ this cluster has a fabric for it: reported
                               └─ otherwise: counted; it is planned all the same, and ``filter``
                                  holds it until its gang is complete

The pods are not changed: most of a pod's spec is immutable, and whether a gang that already runs
over TCP is stopped is its owner's decision. They are reported by an Event on the first pod of each
gang and on its controller, by a gauge, and by ``muster status`` as long as they exist. Everything
needed is in API objects, so a restart finds them again.
"""

import asyncio
import logging
from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Final

from extender.metrics import ExtenderMetrics
from extender.pendingpods import is_pinned
from extender.reporting.reporter import DecisionReporter
from extender.timeslice import Pace
from extender.watchover.admissionfacts import AdmissionFacts
from muster.cluster.ids import GangKey, PodUid
from muster.injection.choosing.choice import SOURCE
from muster.injection.patching.record import ANNOTATION
from muster.injection.podview import Container, PodView, Resources, Spec
from muster.injection.run import inject
from muster.injection.subject import gang_of
from muster.kube import wire
from muster.kube.client import KubeClient
from muster.kube.errors import KubeError, NotFound
from muster.kube.resources import Resource
from muster.workloads.managedpods import has_gate

log = logging.getLogger(__name__)

PERIOD_S: Final = 1.0
LOOK_S: Final = 5.0  # between two reads of the configuration and the profiles, while pods slip past
MOST: Final = 20_000  # pods that are stored: an outage of hours; 2 KiB each until they are judged
CONFIGURATIONS: Final = Resource(
    "admissionregistration.k8s.io",
    "v1",
    "mutatingwebhookconfigurations",
    wire.PartialObject,
    namespaced=False,
)


class Lacks(StrEnum):
    """What a pod lacks because it did not pass the webhook."""

    GATE = "gate"
    INJECTION = "injection"
    SCHEDULER = "scheduler"


@dataclass(frozen=True, slots=True)
class _Suspect:
    """A pod without a trace of the webhook."""

    pod: wire.Pod
    #: None if it names another scheduler
    gang: GangKey | None


@dataclass(slots=True)
class BypassedPods:
    """Pods that slipped past. ``see`` and ``drop`` are called with every pod, ``run`` is a task."""

    client: KubeClient
    admission: AdmissionFacts
    #: name of the MutatingWebhookConfiguration; "": no pod is suspected
    webhook: str
    metrics: ExtenderMetrics
    reporter: DecisionReporter
    pace: Pace
    _suspects: dict[PodUid, _Suspect] = field(default_factory=dict)
    _found: dict[PodUid, tuple[Lacks, GangKey | None]] = field(default_factory=dict)
    #: number of pods that lack injection, by gang; the first of a gang is reported
    _uninjected: Counter[GangKey] = field(default_factory=Counter)
    #: when the configuration was created, None while there is none
    _since: datetime | None = None
    #: when it was read last, on the clock of ``pace``
    _looked: float = float("-inf")
    #: whether the last read succeeded
    _known: bool = True

    def see(self, uid: PodUid, pod: wire.Pod, gang: GangKey | None) -> None:
        """Note a new pod; ``gang``: None if the pod names another scheduler."""
        full = len(self._suspects) + len(self._found) >= MOST
        if self.webhook and not full and not passed_webhook(pod):
            self._suspects[uid] = _Suspect(pod, gang)

    def drop(self, uid: PodUid) -> None:
        """Forget a pod that is deleted or has ended."""
        self._suspects.pop(uid, None)
        lacks, gang = self._found.pop(uid, (None, None))
        if lacks is Lacks.INJECTION and gang is not None:
            self._uninjected[gang] -= 1
            if not self._uninjected[gang]:
                del self._uninjected[gang]

    @property
    def waiting(self) -> int:
        """Number of pods that were not judged yet."""
        return len(self._suspects)

    def counts(self) -> Counter[Lacks]:
        """Return the number of pods now, by what they lack."""
        return Counter(lacks for lacks, _ in self._found.values())

    def problems(self) -> list[str]:
        """Return one line for each problem that needs a person, with what to do."""
        counts = self.counts()
        texts = {
            Lacks.INJECTION: "run without what this cluster gives, they came while the webhook did "
            "not answer: their Events say what they lack; delete those that need it",
            Lacks.SCHEDULER: "name a scheduler that the webhook would have replaced: create them "
            "again",
        }
        return [f"{counts[lacks]} pods {text}" for lacks, text in texts.items() if counts[lacks]]

    async def run(self) -> None:
        """Judge new pods, forever."""
        while True:
            await self.judge()
            counts = self.counts()
            for lacks in Lacks:
                self.metrics.slipped.labels(lacks.value).set(counts[lacks])
            await asyncio.sleep(PERIOD_S)

    async def judge(self) -> None:
        """Judge all new pods; they stay if the webhook's configuration cannot be read now."""
        if not self._suspects or not await self._look():
            return
        for uid in list(self._suspects):
            suspect = self._suspects.pop(uid, None)
            if suspect is not None and self._is_younger(suspect.pod):
                self._judge(uid, suspect)
            await self.pace.breathe()

    async def _look(self) -> bool:
        """Read since when the webhook exists and what it adds; return whether that is known."""
        if self.pace.clock() - self._looked < LOOK_S:
            return self._known
        before, self._known, self._looked = self._known, True, self.pace.clock()
        try:
            found = await self.client.get(CONFIGURATIONS, self.webhook)
            self._since = found.metadata.creation_timestamp
            await self.admission.look(self.client)
        except NotFound:
            self._since = None
        except KubeError as error:
            self._known = False
            if before:
                log.warning("webhook configuration unknown", extra={"error": str(error)})
        return self._known

    def _is_younger(self, pod: wire.Pod) -> bool:
        created = pod.metadata.creation_timestamp
        return self._since is not None and created is not None and created >= self._since

    def _judge(self, uid: PodUid, suspect: _Suspect) -> None:
        if suspect.gang is None:
            self._found[uid] = (Lacks.SCHEDULER, None)
            return
        missing = self._missing(suspect.pod)
        self._found[uid] = (Lacks.INJECTION if missing else Lacks.GATE, suspect.gang)
        if missing:
            self._uninjected[suspect.gang] += 1
            if self._uninjected[suspect.gang] == 1:
                self.reporter.uninjected(suspect.pod, suspect.gang, missing)

    def _missing(self, pod: wire.Pod) -> str:
        """Return what the pod lacks of a fabric's settings, "" if nothing."""
        facts = self.admission.facts
        if facts is None or ANNOTATION in pod.metadata.annotations:
            return ""
        decided = inject(_view(pod), pod.metadata.namespace, facts, gang_of(pod))
        if decided.refusals:
            return f"it would have been refused: {decided.refusals[0]}"
        names = [source.partition("@")[0] for source in decided.record.set]
        fabrics = [name.removeprefix(SOURCE) for name in names if name.startswith(SOURCE)]
        return f"it lacks the settings of fabric {', '.join(fabrics)}" if fabrics else ""


def passed_webhook(pod: wire.Pod) -> bool:
    """Return whether a pod shows a trace of the webhook; only a gated pod can have been pinned."""
    return has_gate(pod) or is_pinned(pod) or ANNOTATION in pod.metadata.annotations


def _view(pod: wire.Pod) -> PodView:
    """Return a pod in the form that injection reads: enough to choose a fabric."""
    spec = pod.spec
    return PodView(
        metadata=pod.metadata,
        spec=Spec(
            containers=tuple(map(_container, spec.containers)),
            init_containers=tuple(map(_container, spec.init_containers)),
            resource_claims=spec.resource_claims,
            node_selector=spec.node_selector,
            affinity=spec.affinity,
            tolerations=spec.tolerations,
            host_network=spec.host_network,
        ),
    )


def _container(own: wire.Container) -> Container:
    asked = own.resources
    resources = Resources(requests=asked.requests, limits=asked.limits, claims=asked.claims)
    return Container(name=own.name, resources=resources)
