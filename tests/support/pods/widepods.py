"""Pods that touch every rule of injection at once, and clusters with all there is to give.

``anypods`` has what fabrics look at; here come the words for tiers, spot capacity, data sets, ranks
and namespaces beside it, amounts that no node has, and text in any script.
"""

import itertools
from dataclasses import replace

from hypothesis import strategies as st
from support.injections.injecting import FABRICS, GPU, JSON, facts
from support.pods.anypods import PODS

from muster.injection.choosing.nodetable import FabricNodes
from muster.injection.nodegroups import NodeGroups
from muster.injection.patching.podsecurity import LABEL
from muster.injection.subject import Facts

NAMESPACES = {"team-a": "privileged", "team-b": "baseline", "team-c": "restricted"}
ODD = st.text(st.characters(blacklist_categories=["Cs"]), max_size=20) | st.sampled_from(
    ["", "0", "é日本🚀", "a\nb", "x" * 10_240, "9" * 5000, "${HOME}", "$(A)"]
)
NOTES = st.dictionaries(
    st.sampled_from(
        [
            "muster.dev/dataset-a", "muster.dev/dataset-b", "muster.dev/dataset-A_b.c",
            "muster.dev/workload", "muster.dev/gpu-tier",
            "muster.dev/capacity", "muster.dev/injected", "note",
        ]
    ),
    ODD | st.sampled_from(
        [
            "gs://b/d:/data:ro", "pvc://claim:/data", "pvc://c/../d:/data", "lustre://l:/dev/shm",
            "pre-training", "inference", "spot", "on-demand", "{}",
            '{"set":{"x":["tolerations[gpu]"]}}', "{",
        ]
    ),
    max_size=4,
)  # fmt: skip
WISHES = st.fixed_dictionaries(
    {},
    optional={
        "muster.dev/fabric": st.sampled_from(["plain-tcp", "none", "generic-roce-hostnet"]),
        "muster.dev/inject": st.sampled_from(["true", "false", "x"]),
    },
)
LABELS = st.fixed_dictionaries(
    {},
    optional={
        "batch.kubernetes.io/job-completion-index": st.just("3"),
        "batch.kubernetes.io/job-name": st.just("train"),
        "muster.dev/gang": st.just("g"),
        "muster.dev/gang-min": st.sampled_from(["1", "4", "999999"]),
        "ray.io/cluster": st.just("r"),
        "a/b~c": ODD,
    },
)
ENV = st.lists(
    st.fixed_dictionaries(
        {"name": st.sampled_from(["RANK", "NCCL_DEBUG", "NCCL_IB_HCA", "é", "LD_LIBRARY_PATH"])},
        optional={"value": ODD, "valueFrom": st.just({"fieldRef": {"fieldPath": "metadata.name"}})},
    ),
    max_size=4,
)  # fmt: skip
AMOUNTS = st.sampled_from(["0", "1", "8", "1000000000", "9223372036854775807", "1e18", "?", 8, 1.5])
WORDS = st.lists(
    ODD | st.sampled_from(["torchrun", "--nnodes=4", "--nnodes=" + "9" * 5000]), max_size=3
)


@st.composite
def wide_pods(draw: st.DrawFn) -> JSON:
    """A pod of ``anypods`` with more of everything."""
    pod: JSON = draw(PODS)
    meta, spec = pod["metadata"], pod["spec"]
    meta["labels"] = {**meta.get("labels", {}), **draw(LABELS)}
    meta["annotations"] = {**meta.get("annotations", {}), **draw(NOTES), **draw(WISHES)}
    for container in (*spec["containers"], *spec.get("initContainers", [])):
        container["env"] = [*container.get("env", []), *draw(ENV)]
        container["args"] = draw(WORDS)
        if draw(st.booleans()):
            resource = draw(st.sampled_from([GPU, "rdma/roce_v2", "vpc.amazonaws.com/efa"]))
            container["resources"] = {"limits": {GPU: "8", resource: draw(AMOUNTS)}}
    if draw(st.booleans()):
        meta["ownerReferences"] = [{"apiVersion": "batch/v1", "kind": "Job", "name": "train",
                                    "uid": "j", "controller": True}]  # fmt: skip
        meta["managedFields"] = [{"manager": "kube-controller-manager"}]
        spec["subdomain"] = "train"
    if draw(st.booleans()):
        spec["schedulerName"] = draw(st.sampled_from(["volcano", "default-scheduler", "mine"]))
    return pod


def live(resources: dict[str, str], labels: dict[str, str]) -> NodeGroups:
    """Four nodes of one pool."""
    table = FabricNodes(frozenset((*labels, "gpu-tier", "cloud.google.com/gke-spot")))
    for number in range(4):
        own = {**labels, "gpu-tier": "inference", "cloud.google.com/gke-spot": "true"}
        table.put(f"n{number}", own, {GPU: "8", **resources}, ())
    return table.nodes()


def _cluster(profile: str, channel: str, *, watched: bool) -> Facts:
    """A cluster that gives all it can: two fabrics, every option, tolerations, classes, tiers."""
    fabric = FABRICS[profile]
    first = {
        "profile": profile,
        "channel": channel,
        "nodeLabels": {"pool": "a"},
        "pods": "accelerated",
        "options": sorted(fabric.options),
    }
    classes = {name: {"runtimeClass": "nvidia", "priorityClass": "p"} for name in NAMESPACES}
    return facts(
        first,
        {"profile": "generic-roce-hostnet", "pods": "accelerated"},
        nodes=live(dict.fromkeys(fabric.spec.node_resources, "8"), {"pool": "a"})
        if watched
        else NodeGroups(),
        namespaces=classes,
        spot="gke-spot",
        tolerations=[{"key": "gpu", "operator": "Exists", "effect": "NoSchedule"}],
    )


def _with_namespaces(known: Facts) -> Facts:
    return replace(known, namespaces={n: {LABEL: level} for n, level in NAMESPACES.items()})


CLUSTERS = st.sampled_from(
    [
        _with_namespaces(_cluster(profile, channel, watched=watched))
        for profile, channel, watched in itertools.product(FABRICS, ("env", "file"), (True, False))
    ]
)
