"""What no policy may do to a pod, and what is put back after one.

At the workload some changes are harmless that at the pod are not: the pod has a name and owners by
now, its controller finds it by labels and would make another in its place, and the API server has
mounted the service account's token.
"""

from collections.abc import Iterator
from typing import Final

import msgspec

from muster.injection.overrides.document import Document
from muster.injection.overrides.edit import LISTS
from muster.injection.overrides.errors import OverrideError
from muster.injection.patching import record
from muster.injection.patching.pointers import Json, Path, same
from muster.injection.podview import PodView
from muster.kube import names, wire

# KubeAdmiral's four (pkg/controllers/sync/overrides.go), and what only the API server writes.
_FIXED: Final = (
    ("kind",), ("apiVersion",),
    ("metadata", "name"), ("metadata", "generateName"), ("metadata", "namespace"),
    ("metadata", "uid"), ("metadata", "ownerReferences"),
    *(("metadata", "annotations", key)
      for key in (names.PLAN, names.ORIGINAL_SCHEDULER, record.ANNOTATION)),
)  # fmt: skip
# Labels by which controllers find their pods or know them, beside those that users choose.
_SELECTING: Final = frozenset({
    "pod-template-hash", "controller-revision-hash", "pod-template-generation",
    "controller-uid", "job-name",
})  # fmt: skip
_SELECTING_DOMAINS: Final = frozenset({
    "batch.kubernetes.io", "apps.kubernetes.io", "statefulset.kubernetes.io",
    "jobset.sigs.k8s.io", "leaderworkerset.sigs.k8s.io", "training.kubeflow.org", "ray.io",
    "volcano.sh",
})  # fmt: skip
_POD: Final = msgspec.json.Decoder(wire.Pod)
_VIEW: Final = msgspec.json.Decoder(PodView)


def check(before: Document, after: Document, selects: frozenset[str]) -> bytes:
    """Return the changed pod as JSON; raises ``OverrideError`` for what may not be changed.

    ``selects``: keys of the labels by which the pod's owner finds it.
    """
    for path in (*_FIXED, *_labels(before, after, selects)):
        if not same(before.find(path), after.find(path)):
            raise OverrideError(f"{'.'.join(path)} may not be overridden")
    try:
        data = msgspec.json.encode(after.root)
        _POD.decode(data)
        _VIEW.decode(data)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise OverrideError(f"what it makes is no pod: {error}") from error
    return data


def _labels(before: Document, after: Document, selects: frozenset[str]) -> Iterator[Path]:
    """Yield the labels that a controller knows its pods by."""
    found = (document.find(("metadata", "labels")) for document in (before, after))
    for labels in found:
        for key in labels if isinstance(labels, dict) else ():
            domain = key.partition("/")[0]
            if key in selects or key in _SELECTING or domain in _SELECTING_DOMAINS:
                yield ("metadata", "labels", key)


def keep_mounted(before: Document, after: Document) -> None:
    """Put back volumes that are gone and still mounted.

    A policy that sets the whole list knows the template's volumes only. On the pod stand the
    service account's token too, a StatefulSet's claims and what other webhooks added.
    """
    fields = list(after.fields)
    there, mounted = set(_names(after, "volumes")), set(_mounts(after))
    for volume in _items(before.find(("spec", "volumes"))):
        name = volume.get("name")
        if name in mounted and name not in there:
            after.add(("spec", "volumes", "-"), volume)
    after.fields[:] = fields


def _names(document: Document, within: str) -> Iterator[Json]:
    return (item.get("name") for item in _items(document.find(("spec", within))))


def _mounts(document: Document) -> Iterator[str]:
    for within in LISTS:
        for container in _items(document.find(("spec", within))):
            for mount in _items(container.get("volumeMounts")):
                name = mount.get("name")
                if isinstance(name, str):
                    yield name


def _items(value: Json) -> Iterator[dict[str, Json]]:
    for item in value if isinstance(value, list) else ():
        if isinstance(item, dict):
            yield item
