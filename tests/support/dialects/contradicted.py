"""The contradictions that users can write, each in the words of a dialect.

One table, put to the webhook and to the planner alike; docs/contradictions.md has the rules.
The cluster's levels are zone > block > rack > host.
"""

from dataclasses import dataclass
from typing import Any, Final

from support.clusters.gangworld import PODS

JSON = dict[str, Any]
GPU: Final = {"resources": {"limits": {"nvidia.com/gpu": "8"}}, "name": "main", "image": "train"}
SPEC: Final = {"containers": [GPU]}
KUEUE: Final = "kueue.x-k8s.io/podset-"
LAYERS: Final = KUEUE + "slice-required-topology-constraints"
RACK, BLOCK = "muster.dev/rack", "muster.dev/block"


@dataclass(frozen=True, slots=True)
class Row:
    """``words``: what both must say. ``at_the_door``: whether the webhook can see it.

    A PodGroup without keys of Muster's may be another scheduler's, so it is let through.
    """

    name: str
    group: str
    plural: str
    body: JSON
    words: tuple[str, ...]
    at_the_door: bool = True


def _pod(name: str, keys: JSON, *words: str, **spec: Any) -> Row:
    body = {
        "metadata": {"name": "p-0", "namespace": "team-a", "annotations": keys},
        "spec": SPEC | spec,
    }
    return Row(name, *PODS, body, words)


def _muster(name: str, keys: JSON, *words: str) -> Row:
    written = {f"muster.dev/{key}": text for key, text in keys.items()}
    gang = {"muster.dev/gang": "g", "muster.dev/gang-size": "16"}
    return _pod(name, gang | written, *words)


def _meta(name: str, annotations: JSON | None = None) -> JSON:
    return {"name": name, "namespace": "team-a", "annotations": annotations or {}}


def _template(annotations: JSON | None = None) -> JSON:
    return {"metadata": {"annotations": annotations or {}}, "spec": SPEC}


def _job(name: str, keys: JSON, *words: str) -> Row:
    spec = {
        "completionMode": "Indexed", "parallelism": 4, "completions": 4,
        "template": _template(keys),
    }  # fmt: skip
    return Row(name, "batch", "jobs", {"metadata": _meta("j"), "spec": spec}, words)


def _object(
    name: str, at: str, body: JSON, *words: str, keys: JSON | None = None, at_the_door: bool = True
) -> Row:
    plural, _, group = at.partition(".")
    whole = {"metadata": _meta("o", keys)} | {"spec": body}
    return Row(name, group, plural, whole, words, at_the_door)


def _jobset() -> JSON:
    job = {"parallelism": 4, "completions": 4, "template": _template()}
    return {"replicatedJobs": [{"name": "workers", "replicas": 1, "template": {"spec": job}}]}


def _pytorch(**more: Any) -> JSON:
    return {"pytorchReplicaSpecs": {"Worker": {"replicas": 4, "template": _template()}}} | more


def _volcano(**task: Any) -> JSON:
    return {"tasks": [{"name": "w", "replicas": 4, "template": _template()} | task]}


def _layers(*layers: tuple[str, int]) -> str:
    written = ", ".join(f'{{"topology": "{level}", "size": {size}}}' for level, size in layers)
    return f"[{written}]"


ROWS: Final = (
    # --- Muster's own keys, on pods
    _muster("minimum over size", {"gang-min": "17"}, "muster.dev/gang-min", '"17"', "16"),
    _muster("unknown level", {"topology-required": "example.com/row"},
            "muster.dev/topology-required", "example.com/row", "levels are", RACK),
    _muster("unknown preferred level", {"topology-preferred": "example.com/row"},
            "muster.dev/topology-preferred", "example.com/row"),
    _muster("slice over size", {"slice-size": "32", "slice-topology": "rack"},
            "muster.dev/slice-size", '"32"', "16"),
    _muster("slice no divisor", {"slice-size": "5", "slice-topology": "rack"},
            "muster.dev/slice-size", '"5"', "choose a number that divides it"),
    _muster("slice without level", {"slice-size": "4"},
            "muster.dev/slice-size", "muster.dev/slice-topology beside it"),
    _muster("level without slice", {"slice-topology": "rack"},
            "muster.dev/slice-topology", "muster.dev/slice-size beside it"),
    _muster("slices no multiples", {"slice-size": "8,3", "slice-topology": "block,rack"},
            "muster.dev/slice-size", '"8,3"', "multiples"),
    _muster("slices crossed", {"slice-size": "8,4", "slice-topology": "rack,block"},
            "muster.dev/slice-topology", "narrower and narrower"),
    _muster("slice around required",
            {"slice-size": "8", "slice-topology": "block", "topology-required": "rack"},
            "muster.dev/slice-topology", "narrower level"),
    _muster("preferred around required",
            {"topology-required": "rack", "topology-preferred": "block"},
            "muster.dev/topology-preferred", "prefer a narrower level"),
    _muster("no run time", {"max-run-time": "soon"},
            "muster.dev/max-run-time", '"soon"', "at most 8760h"),
    _muster("relaxes nothing", {"topology-relax-after": "10m"},
            "muster.dev/topology-relax-after", "muster.dev/topology-preferred beside it"),
    # --- an Indexed Job with Muster's, Kueue's and KAI's keys
    _job("job: minimum over size", {"muster.dev/gang-min": "9"},
         "muster.dev/gang-min", '"9"', "4 members"),
    _job("job: slice over size", {"muster.dev/slice-size": "8", "muster.dev/slice-topology": RACK},
         "muster.dev/slice-size", '"8"', "4 members"),
    _job("kueue: unknown level", {KUEUE + "required-topology": "cloud.example.com/row"},
         KUEUE + "required-topology", "cloud.example.com/row", "levels are"),
    _job("kueue: slice over size",
         {KUEUE + "slice-required-topology": RACK, KUEUE + "slice-size": "8"},
         KUEUE + "slice-size", '"8"', "4 members"),
    _job("kueue: slice without size", {KUEUE + "slice-required-topology": RACK},
         KUEUE + "slice-required-topology", "size of a slice"),
    _job("kueue: slice size is none",
         {KUEUE + "slice-required-topology": RACK, KUEUE + "slice-size": "many"},
         KUEUE + "slice-size", '"many"', "whole number"),
    _job("kueue: slice around required",
         {KUEUE + "required-topology": RACK, KUEUE + "slice-required-topology": BLOCK,
          KUEUE + "slice-size": "2"},
         KUEUE + "slice-required-topology", BLOCK, "share one muster.dev/rack"),
    _job("kueue: no run time", {"kueue.x-k8s.io/max-exec-time-seconds": "0"},
         "kueue.x-k8s.io/max-exec-time-seconds", '"0"', "whole number from 1 to 2147483647"),
    _job("kueue: layers no multiples", {LAYERS: _layers((BLOCK, 3), (RACK, 2))},
         LAYERS, "slices of 3", "multiples"),
    _job("kueue: layers crossed", {LAYERS: _layers((RACK, 4), (BLOCK, 2))},
         LAYERS, BLOCK, "a narrower level"),
    _job("kai: unknown level", {"kai.scheduler/topology-required-placement": "example.com/row"},
         "kai.scheduler/topology-required-placement", "example.com/row"),
    _job("kai: segment over size",
         {"kai.scheduler/segment-size": "8",
          "kai.scheduler/segment-topology-required-placement": RACK},
         "kai.scheduler/segment-size", '"8"', "4 members"),
    _job("kai: minimum over size", {"kai.scheduler/batch-min-member": "9"},
         "kai.scheduler/batch-min-member", '"9"', "4 members"),
    _job("volcano: no such tier",
         {"volcano.sh/network-topology-mode": "hard",
          "volcano.sh/network-topology-highest-tier": "9"},
         "volcano.sh/network-topology-highest-tier", "tier 9", "levels are"),
    # --- objects of the dialects
    _object("jobset: slice around required", "jobsets.jobset.x-k8s.io", _jobset(),
            "muster.dev/slice-topology", "narrower level",
            keys={"muster.dev/topology-required": RACK, "muster.dev/slice-size": "2",
                  "muster.dev/slice-topology": BLOCK}),
    _object("jobset: slice over size", "jobsets.jobset.x-k8s.io", _jobset(),
            KUEUE + "slice-size", '"8"', "4 members",
            keys={KUEUE + "slice-required-topology": RACK, KUEUE + "slice-size": "8"}),
    _object("leaderworkerset: slice over size", "leaderworkersets.leaderworkerset.x-k8s.io",
            {"leaderWorkerTemplate": {"size": 4, "workerTemplate": _template()}},
            "muster.dev/slice-size", '"8"', "4 members",
            keys={"muster.dev/slice-size": "8", "muster.dev/slice-topology": RACK}),
    _object("raycluster: unknown level", "rayclusters.ray.io",
            {"headGroupSpec": {"template": _template()}, "workerGroupSpecs": [
                {"groupName": "w", "replicas": 4, "template": _template()}]},
            "kai.scheduler/topology-required-placement", "example.com/row",
            keys={"kai.scheduler/topology-required-placement": "example.com/row"}),
    _object("pytorchjob: minimum over size", "pytorchjobs.kubeflow.org",
            _pytorch(runPolicy={"schedulingPolicy": {"minAvailable": 99}}),
            "spec.runPolicy.schedulingPolicy.minAvailable", '"99"', "4 members"),
    _object("pytorchjob: maximum under minimum", "pytorchjobs.kubeflow.org",
            _pytorch(elasticPolicy={"minReplicas": 3, "maxReplicas": 2}),
            "spec.elasticPolicy.maxReplicas", '"2"', "at least 3"),
    _object("pytorchjob: negative deadline", "pytorchjobs.kubeflow.org",
            _pytorch(runPolicy={"activeDeadlineSeconds": -5}),
            "spec.runPolicy.activeDeadlineSeconds", '"-5"', "0 or more seconds"),
    _object("volcano job: minimum over size", "jobs.batch.volcano.sh",
            _volcano() | {"minAvailable": 9}, "spec.minAvailable", '"9"', "4 members"),
    _object("volcano job: no such tier", "jobs.batch.volcano.sh",
            _volcano() | {"networkTopology": {"mode": "hard", "highestTierAllowed": 9}},
            "spec.networkTopology.highestTierAllowed", "tier 9", "levels are"),
    _object("volcano job: partition over size", "jobs.batch.volcano.sh",
            _volcano(partitionPolicy={"partitionSize": 8, "networkTopology": {
                "mode": "hard", "highestTierAllowed": 1}}),
            "spec.tasks[w].partitionPolicy.partitionSize", '"8"', "4 members"),
    # --- pods that say it all
    _pod("kueue group: no count",
         {"kueue.x-k8s.io/pod-group-name": "g", "kueue.x-k8s.io/pod-group-total-count": "all"},
         "kueue.x-k8s.io/pod-group-total-count", '"all"', "whole number"),
    _pod("kueue group: no run time",
         {"kueue.x-k8s.io/pod-group-name": "g", "kueue.x-k8s.io/pod-group-total-count": "4",
          "kueue.x-k8s.io/max-exec-time-seconds": "1h"},
         "kueue.x-k8s.io/max-exec-time-seconds", '"1h"', "whole number from 1 to 2147483647"),
    _pod("kueue group: slice over size",
         {"kueue.x-k8s.io/pod-group-name": "g", "kueue.x-k8s.io/pod-group-total-count": "4",
          KUEUE + "slice-required-topology": RACK, KUEUE + "slice-size": "8"},
         KUEUE + "slice-size", '"8"', "4 members"),
    _pod("koordinator: unknown layer",
         {"gang.scheduling.koordinator.sh/name": "g",
          "gang.scheduling.koordinator.sh/min-available": "4",
          "gang.scheduling.koordinator.sh/network-topology-spec":
              '{"gatherStrategy": [{"layer": "SpineLayer", "strategy": "MustGather"}]}'},
         "gang.scheduling.koordinator.sh/network-topology-spec", "SpineLayer", "levels are"),
    _pod("koordinator: multiple over size",
         {"gang.scheduling.koordinator.sh/name": "g",
          "gang.scheduling.koordinator.sh/min-available": "4",
          "gang.scheduling.koordinator.sh/total-number": "4",
          "gang.scheduling.koordinator.sh/network-topology-spec":
              '{"gatherStrategy": [{"layer": "RackLayer", "podCountMultiple": 8}]}'},
         "gang.scheduling.koordinator.sh/network-topology-spec", "podCountMultiple", '"8"'),
    _pod("yunikorn: too many",
         {"yunikorn.apache.org/app-id": "a", "yunikorn.apache.org/task-group-name": "w",
          "yunikorn.apache.org/task-groups": '[{"name": "w", "minMember": 2000000}]'},
         "yunikorn.apache.org/task-groups", '"2000000"', "whole number"),
    # --- PodGroups: with Muster's keys at the door, else by the planner alone
    _object("coscheduling: relaxes nothing of its own", "podgroups.scheduling.x-k8s.io",
            {"minMember": 4}, "muster.dev/slice-size", "muster.dev/slice-topology beside it",
            keys={"muster.dev/slice-size": "4"}),
    _object("native: unknown level with Muster's key", "podgroups.scheduling.k8s.io",
            {"schedulingPolicy": {"gang": {"minCount": 4}}},
            "muster.dev/topology-required", "example.com/row",
            keys={"muster.dev/topology-required": "example.com/row"}),
    _object("native: unknown level", "podgroups.scheduling.k8s.io",
            {"schedulingPolicy": {"gang": {"minCount": 4}},
             "schedulingConstraints": {"topology": [{"key": "example.com/row"}]}},
            "spec.schedulingConstraints.topology", "example.com/row", "levels are",
            at_the_door=False),
    _object("kai group: unknown level", "podgroups.scheduling.run.ai",
            {"minMember": 4, "topologyConstraint": {"requiredTopologyLevel": "example.com/row"}},
            "spec.topologyConstraint.requiredTopologyLevel", "example.com/row",
            at_the_door=False),
    _object("volcano group: no such tier", "podgroups.scheduling.volcano.sh",
            {"minMember": 4, "networkTopology": {"mode": "hard", "highestTierAllowed": 9}},
            "spec.networkTopology.highestTierAllowed", "tier 9", at_the_door=False),
    _object("koordinator group: no number", "podgroups.scheduling.sigs.k8s.io",
            {"minMember": 0}, "spec.minMember", '"0"', at_the_door=False),
    # --- devices
    _pod("two vendors", {}, "several vendors", containers=[
        {"name": "main", "image": "train",
         "resources": {"limits": {"nvidia.com/gpu": "1", "amd.com/gpu": "1"}}}]),
    _pod("more than one device's whole", {"gpu-fraction": "1.5"}, "gpu-fraction", "1.5"),
)  # fmt: skip
