"""Pods that are alike get one decision.

The pods of a job are made from one template, and hundreds of them come within a second. What tells
one from the next is not what injection goes by: its name and number, and the name that the API
server draws for the volume of its service account's token. So that is taken off first, and the rest
is decided about::

    pod ─► impersonal(pod) ─► decided before, with these facts? ─► that decision
                                        │ no
                                        ▼
                              decide(impersonal(pod)) ─► remembered for the next

No rule can go by what it does not get to see, so a remembered decision cannot be another pod's. A
test decides about pods with and without what is taken off, and compares.
"""

from collections.abc import Hashable
from typing import Final

import msgspec
from msgspec.structs import replace

from injection.podview import Container, PodView
from kube.wire import ObjectMeta

KEPT: Final = 512  # decisions: templates whose pods come at about the same time
LONGEST: Final = 1 << 16  # bytes of a pod that is kept
TOKEN: Final = "kube-api-access-"  # noqa: S105  the beginning of a volume's name
_DRAWN: Final = 5  # characters after it (kubernetes plugin/pkg/admission/serviceaccount)
NUMBERS: Final = frozenset({
    "batch.kubernetes.io/job-completion-index", "apps.kubernetes.io/pod-index",
    "statefulset.kubernetes.io/pod-name", "jobset.sigs.k8s.io/job-index",
    "jobset.sigs.k8s.io/job-global-index", "jobset.sigs.k8s.io/job-key",
    "training.kubeflow.org/replica-index", "leaderworkerset.sigs.k8s.io/worker-index",
    "leaderworkerset.sigs.k8s.io/group-index", "volcano.sh/task-index",
    "kueue.x-k8s.io/pod-group-pod-index",
})  # fmt: skip
"""Labels and annotations by which controllers number pods; that they are there stays visible."""

_ENCODER: Final = msgspec.json.Encoder()


def impersonal(pod: PodView) -> PodView:
    """Return the pod without what tells it from others of its template."""
    meta, spec = pod.metadata, pod.spec
    plain = ObjectMeta(
        namespace=meta.namespace,
        labels=_unnumbered(meta.labels),
        annotations=_unnumbered(meta.annotations),
    )
    drawn = [volume for volume in spec.volumes if _is_drawn(volume.name)]
    if len(drawn) != 1:
        return PodView(metadata=plain, spec=replace(spec, hostname=""))
    name = drawn[0].name
    renamed = replace(
        spec,
        hostname="",
        containers=tuple([_mounting(each, name) for each in spec.containers]),
        init_containers=tuple([_mounting(each, name) for each in spec.init_containers]),
        volumes=tuple([v if v.name != name else replace(v, name=TOKEN) for v in spec.volumes]),
    )
    return PodView(metadata=plain, spec=renamed)


def digestible(pod: PodView) -> bytes:
    """Return what two pods have in common if and only if they are the same to every rule."""
    return _ENCODER.encode(pod)


def keep(kept: dict[Hashable, object], key: Hashable, made: object) -> None:
    """Remember one thing more, and forget the oldest where there is no room for it."""
    while len(kept) >= KEPT:
        del kept[next(iter(kept))]
    kept[key] = made


def _unnumbered(keys: dict[str, str]) -> dict[str, str]:
    numbers = [key for key in keys if key in NUMBERS]
    return {**keys, **dict.fromkeys(numbers, "")} if numbers else keys


def _is_drawn(name: str) -> bool:
    return name.startswith(TOKEN) and len(name) == len(TOKEN) + _DRAWN


def _mounting(container: Container, drawn: str) -> Container:
    """Return a container that mounts the volume of that name under one that all pods share."""
    mounts = container.volume_mounts
    if not any([mount.name == drawn for mount in mounts]):
        return container
    renamed = [mount if mount.name != drawn else replace(mount, name=TOKEN) for mount in mounts]
    return replace(container, volume_mounts=tuple(renamed))
