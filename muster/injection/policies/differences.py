"""What the policies cannot say, listed for whoever installs them: nothing is left out in silence.

``DIFFERENCES`` is the whole list, by name: tests compare pods from the policies with pods from the
webhook field by field, and allow nothing that has no name here.
"""

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Final

from msgspec.structs import fields

from muster.injection.patching.additions import Additions, ContainerAdditions
from muster.injection.policies.mutations import MOST_CONTAINERS
from muster.injection.policies.staticpart import SIZES, blocks
from muster.injection.subject import Facts

DIFFERENCES: Final[Mapping[str, str]] = MappingProxyType({
    "ledger": "no ledger (annotation muster.dev/injected): a policy does not know what it changed",
    "warnings": "no warnings but for a gang without a fabric: a policy that adds has none",
    "live-nodes": (
        "live nodes are not looked at: amounts are those of the profile while no node is known, "
        "and every taint of accelerators is tolerated"
    ),
    "own-words": (
        "a pod's own words add nothing: tier, workload, capacity, data sets, fabric options"
    ),
    "ranks": "no rank environment: MASTER_ADDR, RANK, WORLD_SIZE, PET_*",
    "namespaces": "no runtime and priority classes by namespace",
    "overrides": "no override policies",
    "templates": (
        "only pods are changed and checked, not the templates of jobs: Kueue and quotas see the "
        "pods as their authors wrote them"
    ),
    "stated-amounts": (
        "interfaces follow the profile, not an amount of the resource that a container states"
    ),
    "json-networks": "networks written as a JSON list are left as they are",
    "other-fabrics": "a pod that names a fabric which the ClusterProfile does not list is refused",
    "gang-rules": (
        "of the rules on gangs only size and minimum are checked; gangs are not looked up"
    ),
    "managed-fields": "managedFields of gated pods stay: more memory on the API server",
    "order": (
        "tolerations come in any order, one that another covers among them: the API server goes "
        "through policies in none"
    ),
    "many-containers": (
        f"containers after the first {MOST_CONTAINERS}, and pods whose containers ask for more "
        f"than {SIZES[-1]} accelerators each, get no fabric"
    ),
})  # fmt: skip
_SAID: Final = frozenset({
    "source", "containers", "labels", "annotations", "networks", "volumes", "sidecars",
    "tolerations", "node_selector", "host_network", "warnings", "claims",
})  # fmt: skip
_SAID_OF_CONTAINERS: Final = frozenset({
    "env", "resources", "mounts", "capabilities", "privileged", "claims",
})  # fmt: skip


def unsaid(facts: Facts) -> list[str]:
    """Return a sentence for each thing that only the webhook does, those of this cluster last."""
    own = [f"{where}: {what} are not added" for where, what in missing(facts)]
    return [*DIFFERENCES.values(), *own]


def missing(facts: Facts) -> list[tuple[str, str]]:
    """Return what static additions have no mutation: the source, and the field."""
    return list(dict.fromkeys(_missing(facts)))


def _missing(facts: Facts) -> Iterator[tuple[str, str]]:
    for block in blocks(facts):
        for additions, container in zip(block.additions, block.container, strict=False):
            for part, said in ((additions, _SAID), (container, _SAID_OF_CONTAINERS)):
                for name in _filled(part) - said:
                    yield additions.source.partition("@")[0], name


def _filled(part: Additions | ContainerAdditions) -> frozenset[str]:
    return frozenset(field.name for field in fields(part) if getattr(part, field.name))
