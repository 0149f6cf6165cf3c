"""How a node says that it leaves: a taint, or a condition that the model has as one.

Each is data with its source. A cloud's seconds are what it gives at least from its notice on until
the node is gone; where nothing is promised there are none, and gangs go only where they have
another place. What only says *what kind* of node it is (``kubernetes.azure.com/scalesetpriority``,
``cloud.google.com/gke-spot``) is no notice.
"""

from dataclasses import dataclass
from typing import Final

from muster.cluster.specs.podconstraints import GRACE_S

LEAD_S: Final = float(GRACE_S)
"""How long before a node is gone gangs end there at the latest: a pod's default grace period."""


@dataclass(frozen=True, slots=True)
class Notice:
    """A taint or condition, and what it means."""

    #: Key of the taint, or type of the condition.
    key: str
    #: What it says, for people.
    says: str
    #: Seconds from the notice on until the node is gone; ``None``: not known.
    seconds: float | None = None
    #: Whether the taint's value says until when, in seconds since the epoch.
    has_deadline: bool = False


CLOUD_TAINTS: Final = (
    # https://github.com/aws/aws-node-termination-handler, pkg/node/node.go; the cloud gives two
    # minutes before it interrupts a spot instance
    Notice("aws-node-termination-handler/spot-itn", "the spot instance is interrupted", 120.0),
    Notice("aws-node-termination-handler/scheduled-maintenance", "maintenance is scheduled"),
    Notice("aws-node-termination-handler/asg-lifecycle-termination", "its group shrinks"),
    # https://cloud.google.com/kubernetes-engine/docs/concepts/spot-vms: 30 s for spot VMs; regular
    # VMs with accelerators get an hour, which the taint does not tell apart
    Notice("cloud.google.com/impending-node-termination", "the VM is about to end", 30.0),
    # https://learn.microsoft.com/azure/aks/node-auto-drain: set after a scheduled event
    Notice("remediator.kubernetes.azure.com/unschedulable", "AKS drains it", 30.0),
    # https://cloud-provider-azure.sigs.k8s.io: a spot VM is evicted after 30 s
    Notice("cloudprovider.azure.microsoft.com/draining", "the spot VM is evicted", 30.0),
    # https://karpenter.sh/docs/concepts/disruption; waits for pods as long as they take
    Notice("karpenter.sh/disrupted", "Karpenter removes it"),
    # https://github.com/kubernetes/autoscaler, cluster-autoscaler/utils/taints/taints.go
    Notice("ToBeDeletedByClusterAutoscaler", "the cluster autoscaler removes it"),
)
"""Taints of clouds and autoscalers. ``aws-node-termination-handler/rebalance-recommendation`` and
``DeletionCandidateOfClusterAutoscaler`` are no notices: the node may well stay."""

CLOUD_CONDITIONS: Final = (
    # https://learn.microsoft.com/azure/aks/node-problem-detector and …/node-auto-drain; scheduled
    # events give spot VMs 30 s, redeployments ten minutes, terminations five at least
    Notice("PreemptScheduled", "the spot VM is evicted", 30.0),
    Notice("TerminateScheduled", "the VM is about to be deleted", 300.0),
    Notice("RedeployScheduled", "the VM moves to another host", 600.0),
)
"""Types of node conditions. ``FreezeScheduled`` and ``RebootScheduled`` are no notices: the node
comes back."""
