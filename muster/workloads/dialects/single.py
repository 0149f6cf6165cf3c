"""A managed pod that no dialect claims: a gang of one.

It goes the same way as every gang, so nothing downstream knows a special case. Topology
levels mean nothing for one pod; only the queue, the longest run time and whether it serves are
read. The run time is read from ``spec.activeDeadlineSeconds``, too, which the kubelet counts from
the pod's start; whether it serves, from its owner's kind.
"""

from typing import Final

from muster.cluster.specs.gangspec import GangSpec
from muster.kube import wire
from muster.workloads.dialect import Member, Watched, created, gang_key
from muster.workloads.keys.labels import read
from muster.workloads.keys.owners import is_service
from muster.workloads.keys.queuenames import named_queue
from muster.workloads.keys.runtimes import within_deadline

_DEADLINE: Final = "spec.activeDeadlineSeconds"


class SinglePod:
    """The dialect of last resort; claims every pod, so the registry asks it last."""

    name = "pod"
    markers: tuple[str, ...] = ()
    watched: tuple[Watched[wire.Pod], ...] = ()

    def member(self, pod: wire.Pod) -> Member:
        """Return the pod's gang of one."""
        return Member(gang_key(self.name, pod.metadata.namespace, pod.metadata.name))

    def spec_from_pod(self, pod: wire.Pod) -> GangSpec:
        """Return a gang of exactly this pod, which ends with it.

        It goes by the pod's name, and a list may tell of the next pod of that name before it
        tells that this one is gone: so nobody but the model can say when it is over.
        """
        meta = pod.metadata
        reading = read(meta.labels, meta.annotations)
        serves = reading.keys.serves
        spec = GangSpec(
            key=gang_key(self.name, meta.namespace, meta.name),
            namespace=meta.namespace,
            name=meta.name,
            dialect=self.name,
            min_count=1,
            size=1,
            queue=reading.keys.queue or named_queue(meta),
            submitted_at=created(meta),
            lives_with_pods=True,
            max_run_time=reading.keys.max_run_time or reading.wishes.max_run_time,
            preemptibility=reading.wishes.preemptibility,
            cooldown=reading.wishes.cooldown,
            serves=is_service(meta) if serves is None else serves,
        )
        return within_deadline(spec, pod.spec.active_deadline_seconds, _DEADLINE)
