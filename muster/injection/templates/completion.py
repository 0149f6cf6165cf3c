"""Injection into the templates of an object that makes pods. Pure.

Pods are where injection happens: a user's object stays as it was written, so that no GitOps tool
finds a difference and no controller rolls pods because a profile changed. Some controllers look at
the template only and never see what pods get later:

====================  =======================  ====================================================
who                   looks at                 what goes wrong with pods alone
====================  =======================  ====================================================
Kueue, quota          requests, claims         NICs that pods get are in no quota
Kueue, flavors        nodeSelector             a flavor is chosen that the pods' selector excludes
Kueue, flavors        tolerations              a tainted flavor is never chosen
Kueue, order          priorityClassName        the job waits with another priority than its pods
====================  =======================  ====================================================

Such an object is completed once, when it is made. It gets all of it, not these fields alone: a pod
that is made again next week is then the same as its siblings, whatever became of the profile.
Pods find it done, the ledger in the template says so.

**Kueue-safe.** Only a creation is changed. Later Kueue compares the template with its Workload
(another request ends the admission) and, when it stops a job, puts labels, annotations, node
selector and tolerations back as the Workload has them (pkg/podset, RestorePodSpec); made before
the Workload, what is added is part of it. Left alone are

- jobs of a Workload that is there already (``kueue.x-k8s.io/prebuilt-workload-name``; MultiKueue's
  copies are such): the two would differ, and the Workload would end as out of sync;
- objects that another one controls: theirs is the template that is counted, and some controllers
  (JobSet on resumption) write its selectors and tolerations into the child anew;
- templates whose fabric depends on the nodes, where several fit: those are the choice of Kueue's
  flavor, and a selector of ours against the flavor's is a permanent error (podset.Merge). The
  pods get the fabric of the nodes that were chosen.

By default only jobs with a queue are completed (``queued``): they have been changed by Kueue's own
webhook anyway, and other jobs gain nothing by it.
"""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import msgspec

from muster.injection.checks.arguments import nodes
from muster.injection.choosing.choice import choose, fitting, pool, selected_labels
from muster.injection.patching.operations import Operation, pointer
from muster.injection.patching.pointers import Json, Path
from muster.injection.podview import PodView
from muster.injection.profiles.clusterprofile import Templates
from muster.injection.run import Injection, inject
from muster.injection.subject import Facts, Gang, Subject, gang_of
from muster.injection.templates.decodingerrors import template_error
from muster.injection.templates.manifests import PodTemplate, templates
from muster.injection.templates.trainjob import trained
from muster.kube import names, wire
from muster.workloads.descriptions import Described, described

INJECT_TEMPLATE: Final = (
    names.PREFIX + "inject-template"
)  # "true", "false": over the cluster's word
QUEUE_NAME: Final = "kueue.x-k8s.io/queue-name"  # kueue pkg/controller/constants
PREBUILT: Final = "kueue.x-k8s.io/prebuilt-workload-name"
_FACTORIES: Final = frozenset({"CronJob"})  # controllers that never look at what they have made
_WORKERS: Final = "workerTemplate"  # of a LeaderWorkerSet, whose size counts the leader, too
# Kinds that run anew what they have made when their template changes: a manifest applied again
# without the additions would restart it. They are completed only where the object asks for it.
_RESTARTING: Final = frozenset({"LeaderWorkerSet", "RayService"})


@dataclass(frozen=True, slots=True)
class Completed:
    """One pod or template, and what happens to it."""

    template: PodTemplate
    injection: Injection
    #: the pod as the checks saw it
    subject: Subject

    def operations(self) -> Iterator[Operation]:
        """Yield the patch of the template as one of the document.

        Every pod has metadata, a template need not. What only lets the API server compute a
        pod's field anew (a null) is of no use in a template, and custom resources refuse it.
        """
        prefix, operations = pointer(*self.template.path), self.injection.operations
        noted = any(operation.path.startswith("/metadata/") for operation in operations)
        if noted and "metadata" not in self.template.pod:
            yield Operation(f"{prefix}/metadata", {})
        for operation in operations:
            if operation.value is not None or not self.template.path:
                yield msgspec.structs.replace(operation, path=prefix + operation.path)


@dataclass(frozen=True, slots=True)
class _ReadTemplate:
    """A template, decoded twice: as injection and as the dialects read pods."""

    template: PodTemplate
    view: PodView
    pod: wire.Pod

    @classmethod
    def of(cls, template: PodTemplate) -> "_ReadTemplate":
        """Return it read; raises ``TemplateError`` with the field that is of no pod."""
        try:
            view = msgspec.convert(template.pod, PodView)
            return cls(template, view, msgspec.convert(template.pod, wire.Pod))
        except msgspec.ValidationError as error:
            raise template_error(error, template.document, template.path) from error


def completed(document: Json, namespace: str, facts: Facts) -> list[Completed]:
    """Return what every pod and template of a decoded document gets.

    ``namespace``: of the objects. Raises ``TemplateError`` with the field that is of no pod, or
    that its kind does not have.
    """
    read = [_ReadTemplate.of(template) for template in templates(document)]
    by_owner = defaultdict[Path, list[_ReadTemplate]](list)
    for each in read:
        by_owner[each.template.owner].append(each)
    found = [_completed(each, by_owner[each.template.owner], namespace, facts) for each in read]
    training = trained(document, namespace, facts)
    return [*found, Completed(*training)] if training else found


def messages(found: Sequence[Completed]) -> dict[str, list[str]]:
    """Return the messages about all templates, ``refused`` and ``warning``, each text once.

    Roles mostly share one template: the first that a text is about is named.
    """
    about: dict[tuple[str, str], list[PodTemplate]] = {}
    for each in found:
        of = (("refused", each.injection.refusals), ("warning", each.injection.warnings))
        for kind, text in ((kind, text) for kind, texts in of for text in texts):
            about.setdefault((kind, text), []).append(each.template)
    result: dict[str, list[str]] = {"refused": [], "warning": []}
    for (kind, text), where in about.items():
        others = f" (also in {len(where) - 1} more)" if len(where) > 1 else ""
        result[kind].append(f"{where[0].within(text)}{others}")
    return result


def is_watched(document: Mapping[str, Json]) -> bool:
    """Return whether a user wrote the object: what a controller made has had its review."""
    return not _controlled(_meta(document))


def is_wanted(document: Mapping[str, Json], namespace: str, facts: Facts) -> bool:
    """Return whether the templates of an object that is being made are to be changed."""
    meta = _meta(document)
    if _controlled(meta) or PREBUILT in meta.labels or _is(meta, names.INJECT, "false"):
        return False
    asked = meta.annotations.get(INJECT_TEMPLATE) or meta.labels.get(INJECT_TEMPLATE)
    if asked in ("true", "false"):
        return asked == "true"
    spec = facts.cluster.spec
    own = spec.namespaces.get(namespace)
    said = own.job_templates if own and own.job_templates else spec.job_templates
    if said is Templates.QUEUED:
        return is_queued(document) and document.get("kind") not in _RESTARTING
    return said is Templates.ALWAYS


def is_queued(document: Mapping[str, Json]) -> bool:
    """Return whether Kueue counts the object: its queue is a label, in old versions a note."""
    meta = _meta(document)
    return QUEUE_NAME in meta.labels or QUEUE_NAME in meta.annotations


def is_decided(found: Completed) -> bool:
    """Return whether a template's fabric does not depend on the nodes that a queue chooses.

    It does not where only one fits, or where every node that the pods may go to is of the one that
    they would get; where the nodes are not known, where that one is for all of them.
    """
    subject = found.subject
    if len({chosen.profile.name for chosen in fitting(subject)}) <= 1:
        return True
    chosen, nodes = choose(subject), subject.facts.nodes
    if chosen is None or not nodes.known:
        return chosen is not None and not pool(chosen.profile, chosen.choice)
    left = nodes.with_labels(selected_labels(subject.pod))
    return all(
        group in chosen.groups
        for group in left
        if any(group.allocatable.get(name) for name in subject.resources)
    )


def _completed(
    read: _ReadTemplate, siblings: Sequence[_ReadTemplate], namespace: str, facts: Facts
) -> Completed:
    template, view = read.template, read.view
    meta = msgspec.structs.replace(read.pod.metadata, namespace=namespace)
    pod = msgspec.structs.replace(read.pod, metadata=meta)
    said = _described(template)
    gang = _gang(pod, said, template)
    if gang is not None:
        sizes = {gang.size, said.size} - {None}
        gang = replace(gang, counts=_meeting(read, siblings, sizes))
    injection = inject(view, namespace, facts, gang)
    return Completed(template, injection, Subject.of(view, namespace, facts, gang))


def _meeting(
    read: _ReadTemplate, siblings: Sequence[_ReadTemplate], sizes: Collection[int | None]
) -> tuple[int, ...]:
    """Return how many pods may meet in one rendezvous with those of a template.

    The Job's, the role's, all of the object's, or those of the roles that start one at all.
    ``sizes``: of the gang, by the pods' labels and by the object.
    """
    starting = [
        each.template.pods
        for each in siblings
        if any(nodes(container) is not None for container in each.view.spec.containers)
    ]
    found = {*read.template.together, sum(starting), sum(each.template.pods for each in siblings)}
    if read.template.path[-1:] == (_WORKERS,):
        found |= {count - 1 for count in read.template.together}  # without the leader
    return tuple(sorted({count for count in (*found, *sizes) if count}))


def _described(template: PodTemplate) -> Described:
    found = template.object
    api_version, kind = found.get("apiVersion"), found.get("kind")
    if not isinstance(api_version, str) or not isinstance(kind, str):
        return Described(known=False)
    try:
        return described(api_version, kind, found)
    except msgspec.ValidationError as error:
        raise template_error(error, template.document, template.owner) from error


def _gang(pod: wire.Pod, said: Described, template: PodTemplate) -> Gang | None:
    """Return the gang that the pods will be in, as their own labels will say later.

    Of a kind that is not known here, several equal pods are taken for one.
    """
    own = gang_of(pod)
    if own is not None:
        return replace(own, is_open=own.size is None)
    if said.known:
        return Gang(said.dialect) if said.dialect else None
    return Gang("manifest", template.pods) if template.pods > 1 else None


def _controlled(meta: wire.ObjectMeta) -> bool:
    return any(o.controller and o.kind not in _FACTORIES for o in meta.owner_references)


def _is(meta: wire.ObjectMeta, key: str, value: str) -> bool:
    return value in (meta.labels.get(key), meta.annotations.get(key))


def _meta(document: Mapping[str, Json]) -> wire.ObjectMeta:
    try:
        return msgspec.convert(document.get("metadata") or {}, wire.ObjectMeta)
    except msgspec.ValidationError as error:
        raise template_error(error, dict(document), ("metadata",)) from error
