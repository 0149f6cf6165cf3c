"""Who is who: the environment of torchrun and its like, where no framework sets it.

Only what is certain is said. Who trains together is who has one address of rank 0, and the numbers
from 0 on: the pods of one Indexed Job. Its numbers are in a label, its size must be in the pod's
own words (``muster.dev/gang-size`` or another dialect's), so the gang must be that Job and nothing
else, which it shows by its name: it is called as the Job is. A gang of another name may be of
several Jobs, each of which counts from 0, or of other pods beside the Job; one with roles is of
several kinds. And a StatefulSet's numbers may begin anywhere (``spec.ordinals.start``). None of
these gets ranks: a pod with the wrong ones waits for ever for pods that do not exist. The address
needs a Service that gives the pods names, which the pod shows by its ``subdomain``.

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
from muster.injection.subject import Gang, Subject
from muster.kube import names

PORT: Final = "29500"
JOB_INDEX: Final = "batch.kubernetes.io/job-completion-index"
JOB_NAME: Final = "batch.kubernetes.io/job-name"
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
    gang = subject.gang
    if gang is None or gang.size is None or not subject.is_gang:
        return
    if not _is_one_job(subject, gang) or _has_framework(subject):
        return
    places = [p for p in subject.accelerated if not _is_set(container_at(subject.pod, p))]
    if places:
        yield Additions("ranks", tuple((p, _of(subject, p, gang.size)) for p in places))


def _of(subject: Subject, place: ContainerPlace, size: int) -> ContainerAdditions:
    number = EnvSource(field_ref=FieldRef(field_path=f"metadata.labels['{JOB_INDEX}']"))
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


def _is_one_job(subject: Subject, gang: Gang) -> bool:
    """Return whether the gang is the pod's Indexed Job, as far as its pods can tell."""
    labels, annotations = subject.pod.metadata.labels, subject.pod.metadata.annotations
    if JOB_INDEX not in labels or names.ROLE in labels or names.ROLE in annotations:
        return False
    named = labels.get(names.GANG) or annotations.get(names.GANG) or gang.name
    return not named or named == labels.get(JOB_NAME)


def _has_framework(subject: Subject) -> bool:
    meta = subject.pod.metadata
    return _FRAMEWORK.search("\n".join((*meta.labels, *meta.annotations))) is not None


def _is_set(container: Container) -> bool:
    """Return whether the container says anything of ranks itself."""
    names = names_of(container)
    return not _RANKS.isdisjoint(names) or _PREFIXED.search("\n".join(names)) is not None
