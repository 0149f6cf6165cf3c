"""Who is who: the environment of torchrun and its like, where no framework sets it.

Only what is certain is said. A pod of an Indexed Job or a StatefulSet has its number in a label, so
its rank comes from there; the size must be in the pod's own words (``muster.dev/gang-size`` or
another dialect's); the address of rank 0 needs a Service that gives the pods names, which the pod
shows by its ``subdomain``.

==================  ===============================================================================
MASTER_ADDR         ``JOB-0.SUBDOMAIN``, as the Job controller names its pods
MASTER_PORT         29500, torchrun's default
RANK, NODE_RANK     the pod's number
WORLD_SIZE          the gang's size, as Kubeflow's training operator has it: pods, not processes
PET_*               the same as torchrun reads them, and accelerators as processes per node
==================  ===============================================================================

Sources: pytorch torch/distributed/run.py; kubeflow/training-operator pkg/controller.v1/pytorch;
kubernetes pkg/controller/job/indexed_job_utils.go. A container that sets any of them is the user's
or a framework's own and is left alone, and so are the pods of operators that set them later.
"""

import re
from collections.abc import Iterator
from typing import Final

from muster.injection.patching.additions import (
    Additions,
    ContainerAdditions,
    ContainerPlace,
    Env,
    EnvSource,
    FieldRef,
)
from muster.injection.patching.containers import container_at, names_of
from muster.injection.podview import Container
from muster.injection.profiles.reservednames import EXACT, PREFIXES
from muster.injection.subject import Subject

PORT: Final = "29500"
JOB_INDEX: Final = "batch.kubernetes.io/job-completion-index"
JOB_NAME: Final = "batch.kubernetes.io/job-name"
SET_INDEX: Final = "apps.kubernetes.io/pod-index"
_FRAMEWORKS: Final = (
    "training.kubeflow.org/", "trainer.kubeflow.org/", "leaderworkerset.sigs.k8s.io/",
    "volcano.sh/", "ray.io/", "jobset.sigs.k8s.io/", "grove.io/", "mpi-operator",
)  # fmt: skip

_RANKS: Final = frozenset(name for name in EXACT if "VISIBLE" not in name)
# One search over names in lines: asking each name was a hundred calls for a pod of fifty variables.
_FRAMEWORK: Final = re.compile(rf"^(?:{'|'.join(map(re.escape, _FRAMEWORKS))})", re.MULTILINE)
_PREFIXED: Final = re.compile(rf"^(?:{'|'.join(PREFIXES)})", re.MULTILINE)


def ranks(subject: Subject) -> Iterator[Additions]:
    """Yield the rank environment of accelerator containers."""
    label, gang = _index_label(subject), subject.gang
    if (
        not label
        or gang is None
        or gang.size is None
        or not subject.is_gang
        or _has_framework(subject)
    ):
        return
    places = [p for p in subject.accelerated if not _is_set(container_at(subject.pod, p))]
    if places:
        yield Additions("ranks", tuple((p, _of(subject, p, label, gang.size)) for p in places))


def _of(subject: Subject, place: ContainerPlace, label: str, size: int) -> ContainerAdditions:
    number = EnvSource(field_ref=FieldRef(field_path=f"metadata.labels['{label}']"))
    ranked = tuple(Env(name=n, value_from=number) for n in ("RANK", "NODE_RANK", "PET_NODE_RANK"))
    sized = tuple(Env(name=name, value=str(size)) for name in ("WORLD_SIZE", "PET_NNODES"))
    processes = Env(name="PET_NPROC_PER_NODE", value=str(subject.accelerated[place]))
    return ContainerAdditions(env=(*_master(subject), *sized, *ranked, processes))


def _master(subject: Subject) -> tuple[Env, ...]:
    meta, spec = subject.pod.metadata, subject.pod.spec
    job = meta.labels.get(JOB_NAME, "")
    if not job or not spec.subdomain:
        return ()
    address = f"{job}-0.{spec.subdomain}"
    pairs = (("_ADDR", address), ("_PORT", PORT))
    return tuple(
        Env(name=f"{p}{end}", value=v) for p in ("MASTER", "PET_MASTER") for end, v in pairs
    )


def _index_label(subject: Subject) -> str:
    labels = subject.pod.metadata.labels
    return next((key for key in (JOB_INDEX, SET_INDEX) if key in labels), "")


def _has_framework(subject: Subject) -> bool:
    meta = subject.pod.metadata
    return _FRAMEWORK.search("\n".join((*meta.labels, *meta.annotations))) is not None


def _is_set(container: Container) -> bool:
    """Return whether the container says anything of ranks itself."""
    names = names_of(container)
    return not _RANKS.isdisjoint(names) or _PREFIXED.search("\n".join(names)) is not None
