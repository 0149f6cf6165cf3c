"""YuniKorn's applications with task groups (docs/user_guide/gang_scheduling.md).

Pods of an application carry its id (label or annotation ``yunikorn.apache.org/app-id``, or
the older label ``applicationId``) and, to take part in gang scheduling, the annotation
``yunikorn.apache.org/task-group-name``. At least one of them, usually the first or all,
carries ``…/task-groups``: a JSON list of names with ``minMember``. Task groups are roles.

YuniKorn fills the places of members that do not exist yet with placeholder pods, so a
member may be what creates the others: a Spark driver makes its executors. Muster places
pods, not placeholders, so behind a driver only its own task group is waited for; executors
join it when they come. A pod of an application without a task group is on its own, as it
is for YuniKorn. Once the placeholders were replaced the application runs, and each pod that comes
later goes by itself.
"""

from typing import Final

import msgspec

from muster.cluster.specs.gangspec import GangSpec, RoleSpec
from muster.kube import wire
from muster.workloads.dialect import Member, Watched, created, gang_key
from muster.workloads.dialects.podgroups import count_problem, roles_of, said
from muster.workloads.keys.labels import overlay, read
from muster.workloads.keys.queuenames import YUNIKORN_APP, YUNIKORN_QUEUE
from muster.workloads.keys.ranks import pod_rank

APP_ID: Final = YUNIKORN_APP
TASK_GROUP: Final = "yunikorn.apache.org/task-group-name"
TASK_GROUPS: Final = "yunikorn.apache.org/task-groups"
SPARK_ROLE: Final = "spark-role"  # label that Spark writes on its pods
DRIVER: Final = "driver"


class TaskGroup(wire.Wire, frozen=True):
    """One entry of the list: members that ask for the same."""

    name: str = ""
    min_member: int = 0


class YuniKorn:
    """The dialect; stateless."""

    name = "yunikorn"
    markers = (TASK_GROUP,)
    watched: tuple[Watched[wire.Pod], ...] = ()

    def member(self, pod: wire.Pod) -> Member | None:
        """Return the application and the task group that the pod names."""
        meta = pod.metadata
        application, task_group = said(meta, *APP_ID), said(meta, TASK_GROUP)
        if not application or not task_group:
            return None
        key = gang_key(self.name, meta.namespace, application)
        return Member(key, task_group, pod_rank(meta))

    def spec_from_pod(self, pod: wire.Pod) -> GangSpec | None:
        """Return what the list says, None for a pod that leaves it to another one."""
        meta = pod.metadata
        text, application = said(meta, TASK_GROUPS), said(meta, *APP_ID)
        if not text or not application or not said(meta, TASK_GROUP):
            return None
        roles, problems = _roles(text)
        if meta.labels.get(SPARK_ROLE) == DRIVER:
            roles = tuple(role for role in roles if role.name == said(meta, TASK_GROUP))
        plain = GangSpec(
            key=gang_key(self.name, meta.namespace, application),
            namespace=meta.namespace,
            name=application,
            dialect=self.name,
            min_count=max(sum(role.min_count for role in roles), 1),
            roles=roles,
            queue=meta.labels.get(YUNIKORN_QUEUE, ""),
            submitted_at=created(meta),
            problems=problems,
            written=(("min_count", f"metadata.annotations[{TASK_GROUPS}]"),),
            once=True,
        )
        return overlay(plain, read(meta.labels, meta.annotations))


def _roles(text: str) -> tuple[tuple[RoleSpec, ...], tuple[str, ...]]:
    """Return the task groups as roles, and what is wrong with them."""
    field = f"metadata.annotations[{TASK_GROUPS}]"
    try:
        groups = msgspec.json.decode(text, type=list[TaskGroup], strict=False)
    except (msgspec.DecodeError, RecursionError) as error:
        return (), (f"{field}: {error}",)
    problems = [
        problem
        for group in groups
        for problem in count_problem(max(group.min_member, 0) or 1, f"{field}: {group.name}")
    ]
    return roles_of({group.name: group.min_member for group in groups}), tuple(problems)
