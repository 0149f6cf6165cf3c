"""``ClusterProfile``, Muster's own small CRD: what this cluster is called and what it has.

One object describes one cluster. Its name, aliases and labels are what override policies select
by; the lists say which fabric a pod gets and what every accelerator pod here needs.
"""

from enum import StrEnum
from typing import Literal

import msgspec

from muster.injection.patching.additions import AdditionStruct
from muster.injection.profiles.fabric import IgnoredStatus, Injected, Name
from muster.injection.profiles.tiers import Tiers
from muster.kube.wire import Toleration


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


class Templates(StrEnum):
    """Whose pod templates are completed when the object is made."""

    NEVER = "never"
    QUEUED = "queued"  # jobs that a queue counts by their template: Kueue's
    ALWAYS = "always"


class Channel(StrEnum):
    """How NCCL's settings reach the ranks."""

    ENV = "env"  # variables of the container
    FILE = "file"  # /etc/nccl.conf, which variables and ~/.nccl.conf win over


class FabricChoice(AdditionStruct, frozen=True):
    """A fabric and who gets it; the first choice that fits a pod is taken.

    Who: ``node_labels``: the node pool ("" for any value); only pods that may go to such nodes.
    ``namespaces``: names; ``namespace_labels``: labels of the namespace; empty for all.

    What: ``options``: extras of the profile that are on for every pod. ``version``: of the
    vendor's software in this cluster; by default the profile's first. ``names``: what resources,
    networks and claim templates of the profile are called here. ``inject``: what is otherwise
    here, over what the profile says. ``strict``: NCCL may use this network only (``NCCL_NET``), and
    fails where it cannot be had, in place of going over TCP.
    """

    profile: str
    pods: Pods = Pods.GANGS
    node_labels: dict[str, str] = msgspec.field(default_factory=dict)
    namespaces: tuple[str, ...] = ()
    namespace_labels: dict[str, str] = msgspec.field(default_factory=dict)
    options: tuple[str, ...] = ()
    version: str = ""
    names: dict[str, str] = msgspec.field(default_factory=dict)
    inject: Injected = Injected()
    channel: Channel = Channel.ENV
    strict: bool = False


class OfNamespace(AdditionStruct, frozen=True):
    """What is otherwise in a namespace: classes of accelerator pods that name none, templates."""

    runtime_class: str = ""
    priority_class: str = ""
    job_templates: Templates | None = None


class ClusterProfileSpec(AdditionStruct, frozen=True):
    """See ``FabricChoice``; ``tolerations`` are given to every accelerator pod.

    ``tiers``: in place of those that come with Muster. ``spot``: name of the provider's entry in
    ``spot.yaml``; "" lets the nodes decide. ``job_templates``: whose pod templates are completed
    when the object is made.
    """

    aliases: tuple[str, ...] = ()
    labels: dict[str, str] = msgspec.field(default_factory=dict)
    fabrics: tuple[FabricChoice, ...] = ()
    tolerations: tuple[Toleration, ...] = ()
    tiers: Tiers | None = None
    spot: str = ""
    namespaces: dict[str, OfNamespace] = msgspec.field(default_factory=dict)
    without_fabric: Loudness = Loudness.WARN
    job_templates: Templates = Templates.QUEUED


class ClusterProfile(AdditionStruct, frozen=True):
    """One cluster's profile."""

    api_version: Literal["muster.dev/v1alpha1"] = "muster.dev/v1alpha1"
    kind: Literal["ClusterProfile"] = "ClusterProfile"
    metadata: Name = Name(name="default")
    spec: ClusterProfileSpec = ClusterProfileSpec()
    status: IgnoredStatus | None = None
