"""For which gangs room can be reserved before their pods exist. Pure.

The first pod stands for all members of its gang. So the members must be alike and numbered, and
their number must be known. A release must have nothing to write but the pin, because the pods are
created with their plan in them and are not written again.

The first pod is shown as it will be stored, but for what the API server adds to what Muster adds:
its plugins LimitRanger, Priority and RuntimeClass have run before webhooks do, and run once more
when a webhook has changed the pod (kubernetes pkg/kubeapiserver/options/plugins.go; apiserver
pkg/admission/reinvocation.go). Then the webhook is called again, and a pod that asks for something
else now gets no place. Its priority is not compared, so it must be known from the beginning.
"""

from collections.abc import Sequence
from typing import Final

from muster.cluster.specs.gangspec import PODS_PER_JOB, GangSpec
from muster.kube.wire import Pod
from muster.workloads.dialect import NO_RANK
from muster.workloads.keys.ranks import COMPLETION_INDEX, POD_INDEX, told_by
from muster.workloads.managedpods import has_gate
from muster.workloads.registry import PodMembership

MOST_MEMBERS: Final = 4_096
"""The most members of one reservation. Each takes 0.1 to 0.2 ms to enter, hold and answer, and the
controller that creates the first pod waits for all of them."""


def pod_problem(pod: Pod, placed: PodMembership | None) -> str:
    """Return why nothing can be reserved for the gang of this pod, "" if it may be possible."""
    if placed is None:
        return "the pod is in no gang"
    member = placed.member
    if member.rank == NO_RANK or member.role or member.template is not None:
        return "members are not numbered, or are of several kinds"
    told = told_by(pod.metadata, (COMPLETION_INDEX, POD_INDEX))
    if told is not None and told[1] == POD_INDEX:
        return "the numbers of a StatefulSet may begin anywhere"
    if len(pod.spec.scheduling_gates) != 1 or not has_gate(pod):
        return "the pod has gates of others"
    if not any(owner.controller for owner in pod.metadata.owner_references):
        return "no controller would replace a pod whose node is lost"
    affinity = pod.spec.affinity
    if affinity is not None and affinity.node_affinity is not None:
        return "the pod has node affinity of its own"
    if pod.spec.priority is None and pod.spec.priority_class_name:
        return "the pod was given a PriorityClass, whose number is not known yet"
    return ""


def gang_problem(spec: GangSpec | None, number: int) -> str:
    """Return why the member ``number`` cannot reserve for its gang, "" if it can."""
    if spec is None:
        return "the gang is not described yet"
    if spec.problems:
        return "the gang contradicts itself"
    if spec.roles or spec.unit or spec.slice_size:
        return "the gang has roles or slices"
    wanted = member_count(spec)
    if not max(spec.min_count, 2) <= wanted <= MOST_MEMBERS:
        return f"a gang of {wanted}: from 2, or its least number, to {MOST_MEMBERS} are"
    return "" if number in numbers(spec) else "the pod has a number that the gang does not have"


def numbering_problem(spec: GangSpec | None, jobs: Sequence[int]) -> str:
    """Return why the numbers of a gang's pods are not the gang's, "" where they may be.

    ``jobs``: pods of each of the Jobs that are known to make its members.
    """
    if spec is None or spec.rank_runs or list(jobs) in ([], [member_count(spec)]):
        return ""
    return f"members are numbered by {len(jobs)} Jobs of {sum(jobs)} pods, not by the gang"


def member_count(spec: GangSpec) -> int:
    """Return the number of members. It lists none, since a user may write any number."""
    return sum(jobs * pods for jobs, pods in spec.rank_runs) or spec.size or spec.min_count


def numbers(spec: GangSpec) -> list[int]:
    """Return the numbers of all members."""
    if not spec.rank_runs:
        return list(range(spec.size or spec.min_count))
    sizes = [pods for jobs, pods in spec.rank_runs for _ in range(jobs)]
    return [job * PODS_PER_JOB + index for job, size in enumerate(sizes) for index in range(size)]
