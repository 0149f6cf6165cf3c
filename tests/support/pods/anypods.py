"""Pods of every sort, for what must hold for each, and what it means that nothing was lost."""

from hypothesis import strategies as st
from support.injections.injecting import GPU

NAMES = st.sampled_from(
    ["NCCL_SOCKET_IFNAME", "NCCL_IB_DISABLE", "NCCL_DEBUG", "LD_LIBRARY_PATH", "HOME", "MINE"]
)
WORDS = st.sampled_from(["", "0", "ib0", "eth0", "$(HOME)"])
QUANTITIES = st.dictionaries(
    st.sampled_from([GPU, "rdma/roce_v2", "rdma/ib", "nvidia.com/rdma-vf", "memory", "cpu"]),
    st.sampled_from(["0", "1", "8"]),
)
TOLERATIONS = st.fixed_dictionaries(
    {},
    optional={
        "key": st.sampled_from([GPU, "spot"]),
        "operator": st.sampled_from(["Exists", "Equal"]),
        "effect": st.sampled_from(["", "NoSchedule", "NoExecute"]),
    },
)
RESOURCES = st.fixed_dictionaries({}, optional={"limits": QUANTITIES, "requests": QUANTITIES})
PATHS = st.sampled_from(["/dev/shm", "/usr/local/nvidia/lib64/", "/dev/infiniband", "/tmp"])
ASKING = st.just({"limits": {GPU: "8"}})
MOUNTS = st.fixed_dictionaries(
    {"name": st.sampled_from(["v", "muster-nvidia"]), "mountPath": PATHS}
)
SECURITY = st.fixed_dictionaries(
    {},
    optional={
        "runAsUser": st.just(1000),
        "capabilities": st.sampled_from([{}, {"add": ["NET_RAW"]}, {"drop": ["ALL"]}]),
    },
)
ENV = st.fixed_dictionaries({"name": NAMES, "value": WORDS})
CONTAINERS = st.fixed_dictionaries(
    {"name": st.sampled_from(["main", "side"])},
    optional={
        "env": st.lists(ENV, unique_by=lambda env: env["name"]),
        "resources": RESOURCES | ASKING,
        "volumeMounts": st.lists(MOUNTS, max_size=2, unique_by=lambda mount: mount["mountPath"]),
        "securityContext": SECURITY,
    },
)
NETWORKS = st.sampled_from(["a, b", "rdma-network", '[{"name": "x"}]', "[", ","])
ANNOTATIONS = st.fixed_dictionaries(
    {},
    optional={
        "k8s.v1.cni.cncf.io/networks": NETWORKS,
        "muster.dev/compute-domain-template": st.just("channel"),
        "muster.dev/fabric-options": st.sampled_from(["debug", "topology, sharp, dra", "?"]),
        "networking.gke.io/interfaces": st.just("[]"),
    },
)
VOLUMES = st.sampled_from([{"name": name} for name in ("muster-shm", "muster-nvidia", "v")])
PODS = st.fixed_dictionaries(
    {
        "metadata": st.fixed_dictionaries(
            {"name": st.just("p")},
            optional={"labels": st.just({"a/b~c": "d"}), "annotations": ANNOTATIONS},
        ),
        "spec": st.fixed_dictionaries(
            {"containers": st.lists(CONTAINERS, min_size=1, max_size=2)},
            optional={
                "initContainers": st.lists(CONTAINERS, max_size=1),
                "tolerations": st.lists(TOLERATIONS, max_size=2),
                "dnsPolicy": st.sampled_from(["ClusterFirst", "None"]),
                "hostNetwork": st.booleans(),
                "volumes": st.lists(VOLUMES, max_size=2, unique_by=lambda volume: volume["name"]),
                "resourceClaims": st.lists(st.just({"name": "rdma"}), max_size=1),
                "nodeSelector": st.sampled_from([{}, {"pool": "a"}, {"x/y": ""}]),
            },
        ),
    }
)


def without_additions(before: object, after: object) -> bool:
    """Return whether ``after`` is ``before`` and more: the rule for every map, list and value."""
    if isinstance(before, dict) and isinstance(after, dict):
        return all(key in after and _kept(key, value, after[key]) for key, value in before.items())
    if isinstance(before, list) and isinstance(after, list):
        rest = iter(after)
        return all(any(without_additions(item, other) for other in rest) for item in before)
    return before == after


def _kept(key: str, before: object, after: object) -> bool:
    """Allow what is meant to change: a default policy for names, a list that grows in a string."""
    if key == "dnsPolicy" and before == "ClusterFirst":
        return True
    if key == "hostNetwork":
        return before is False or after is True
    if key == "k8s.v1.cni.cncf.io/networks":
        return str(before).strip(" ,[]") in str(after) or before == after
    return before is None or without_additions(before, after)
