"""``ClusterProfile``, Muster's own small CRD: what this cluster is called and what it has.

One object describes one cluster. Its name, aliases and labels are what override policies select
by; the lists say which fabric a pod gets and what every accelerator pod here needs.
"""

from enum import StrEnum
from typing import Literal

import msgspec

from injection.fabric import Name
from injection.parts import Part
from injection.placesdata import Tiers
from kube.wire import Toleration


class Loudness(StrEnum):
    """What happens to a pod that would silently run without its fabric."""

    IGNORE = "ignore"
    WARN = "warn"
    DENY = "deny"


class Pods(StrEnum):
    """Which pods a fabric is for."""

    GANGS = "gangs"  # accelerator pods that have siblings: one pod alone needs no network
    ACCELERATED = "accelerated"  # every accelerator pod
    ASKING = "asking"  # only those that name it: annotation muster.dev/fabric


class FabricChoice(Part, frozen=True):
    """A fabric and who gets it; the first choice that fits a pod is taken.

    ``node_labels``: the node pool; only pods that may go to such nodes. ``namespaces``: names;
    empty for all. ``options``: extras of the profile that are on for every pod.
    """

    profile: str
    pods: Pods = Pods.GANGS
    node_labels: dict[str, str] = msgspec.field(default_factory=dict)
    namespaces: tuple[str, ...] = ()
    options: tuple[str, ...] = ()


class OfNamespace(Part, frozen=True):
    """Classes that accelerator pods of a namespace get where they name none."""

    runtime_class: str = ""
    priority_class: str = ""


class ClusterProfileSpec(Part, frozen=True):
    """See ``FabricChoice``; ``tolerations`` are given to every accelerator pod.

    ``tiers``: in place of those that come with Muster. ``spot``: name of the provider's entry in
    ``spot.yaml``; "" lets the nodes tell.
    """

    aliases: tuple[str, ...] = ()
    labels: dict[str, str] = msgspec.field(default_factory=dict)
    fabrics: tuple[FabricChoice, ...] = ()
    tolerations: tuple[Toleration, ...] = ()
    tiers: Tiers | None = None
    spot: str = ""
    namespaces: dict[str, OfNamespace] = msgspec.field(default_factory=dict)
    without_fabric: Loudness = Loudness.WARN


class ClusterProfile(Part, frozen=True):
    """One cluster's profile."""

    api_version: Literal["muster.dev/v1alpha1"] = "muster.dev/v1alpha1"
    kind: Literal["ClusterProfile"] = "ClusterProfile"
    metadata: Name = Name(name="default")
    spec: ClusterProfileSpec = ClusterProfileSpec()
