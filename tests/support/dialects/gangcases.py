"""One gang of three in every batch scheduler's dialect, after the projects' documentation."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from support.dialects.kinds import COSCHEDULING, JSON, KAI, KOORDINATOR, VOLCANO, described, member

from muster.kube import names


@dataclass(frozen=True)
class Case:
    """A gang: the objects that describe it and what its pods carry, one entry per pod."""

    pods: Sequence[dict[str, Any]]
    objects: Sequence[JSON] = ()
    required: str = ""

    def members(self) -> list[JSON]:
        """Return the pods, m-0 and so on."""
        return [member(f"m-{n}", **carried) for n, carried in enumerate(self.pods)]


TASK_GROUPS = json.dumps(
    [{"name": "launcher", "minMember": 1}, {"name": "workers", "minMember": 2}]
)
CASES = {
    "volcano": Case(
        [{"annotations": {"scheduling.k8s.io/group-name": "pg"}}] * 3,
        [
            described(
                VOLCANO,
                "PodGroup",
                "pg",
                {"minMember": 3, "networkTopology": {"mode": "hard", "highestTierAllowed": 1}},
            )
        ],
        required=names.RACK,
    ),
    "volcano job": Case(
        [
            {
                "annotations": {
                    "scheduling.k8s.io/group-name": "train-1",
                    "volcano.sh/job-name": "train",
                    "volcano.sh/task-spec": task,
                }
            }
            for task in ("master", "worker", "worker")
        ],
        [
            described(
                "batch.volcano.sh/v1alpha1",
                "Job",
                "train",
                {"tasks": [{"name": "master", "replicas": 1}, {"name": "worker", "replicas": 2}]},
            )
        ],
    ),
    "kueue": Case(
        [
            {
                "labels": {"kueue.x-k8s.io/pod-group-name": "g"},
                "annotations": {
                    "kueue.x-k8s.io/pod-group-total-count": "3",
                    "kueue.x-k8s.io/podset-required-topology": names.RACK,
                },
            }
        ]
        * 3,
        required=names.RACK,
    ),
    "kai": Case(
        [{"annotations": {"pod-group-name": "pg"}}] * 3,
        [
            described(
                KAI,
                "PodGroup",
                "pg",
                {"minMember": 3, "topologyConstraint": {"requiredTopologyLevel": names.RACK}},
            )
        ],
        required=names.RACK,
    ),
    "koordinator": Case(
        [
            {
                "annotations": {
                    "gang.scheduling.koordinator.sh/name": "g",
                    "gang.scheduling.koordinator.sh/min-available": "3",
                    "gang.scheduling.koordinator.sh/network-topology-spec": json.dumps(
                        {"gatherStrategy": [{"layer": "RackLayer", "strategy": "MustGather"}]}
                    ),
                }
            }
        ]
        * 3,
        required=names.RACK,
    ),
    "koordinator pod group": Case(
        [{"labels": {"pod-group.scheduling.sigs.k8s.io": "pg"}}] * 3,
        [described(KOORDINATOR, "PodGroup", "pg", {"minMember": 3})],
    ),
    "coscheduling": Case(
        [{"labels": {"scheduling.x-k8s.io/pod-group": "pg"}}] * 3,
        [described(COSCHEDULING, "PodGroup", "pg", {"minMember": 3})],
    ),
    "lightweight": Case(
        [
            {
                "labels": {
                    "pod-group.scheduling.sigs.k8s.io/name": "g",
                    "pod-group.scheduling.sigs.k8s.io/min-available": "3",
                }
            }
        ]
        * 3,
    ),
    "yunikorn": Case(
        [
            {
                "labels": {"applicationId": "app"},
                "annotations": {
                    "yunikorn.apache.org/task-group-name": group,
                    "yunikorn.apache.org/task-groups": TASK_GROUPS,
                },
            }
            for group in ("launcher", "workers", "workers")
        ],
    ),
    "native": Case(
        [{"spec": {"schedulingGroup": {"podGroupName": "pg"}}}] * 3,
        [
            described(
                "scheduling.k8s.io/v1alpha2",
                "PodGroup",
                "pg",
                {
                    "schedulingPolicy": {"gang": {"minCount": 3}},
                    "schedulingConstraints": {"topology": [{"key": names.RACK}]},
                },
            )
        ],
        required=names.RACK,
    ),
    "native workload": Case(
        [{"spec": {"workloadRef": {"name": "w", "podGroup": "g", "podGroupReplicaKey": "0"}}}] * 3,
        [
            described(
                "scheduling.k8s.io/v1alpha1",
                "Workload",
                "w",
                {"podGroups": [{"name": "g", "policy": {"gang": {"minCount": 3}}}]},
            )
        ],
    ),
}
