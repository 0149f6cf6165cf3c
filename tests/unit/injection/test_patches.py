"""What holds for every pod: the patch applies, the user's fields stay, twice is once."""

from hypothesis import given
from hypothesis import strategies as st
from support.injecting import GPU, JSON, facts, injected, patch, result

ALL = facts(
    {"profile": "generic-roce-hostnet", "options": ["debug", "algo-ring"]},
    tolerations=[{"key": GPU, "operator": "Exists", "effect": "NoSchedule"}],
)
NAMES = st.sampled_from(["NCCL_SOCKET_IFNAME", "NCCL_IB_DISABLE", "NCCL_DEBUG", "HOME", "MINE"])
WORDS = st.sampled_from(["", "0", "ib0", "eth0", "$(HOME)"])
QUANTITIES = st.dictionaries(
    st.sampled_from([GPU, "rdma/roce_v2", "memory", "cpu"]), st.sampled_from(["0", "1", "8"])
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
SHM = st.fixed_dictionaries({"name": st.just("v"), "mountPath": st.just("/dev/shm")})
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
        "resources": RESOURCES,
        "volumeMounts": st.lists(SHM, max_size=1),
        "securityContext": SECURITY,
    },
)
NETWORKS = st.sampled_from(["a, b", "rdma-network", '[{"name": "x"}]', "[", ","])
ANNOTATIONS = st.one_of(
    st.just({}), NETWORKS.map(lambda text: {"k8s.v1.cni.cncf.io/networks": text})
)
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
                "volumes": st.lists(st.just({"name": "muster-shm"}), max_size=1),
            },
        ),
    }
)


@given(PODS)
def test_a_patch_always_applies_and_a_second_one_is_empty(pod: JSON) -> None:
    after = injected(pod, ALL)
    assert patch(result(after, ALL)) == []


@given(PODS)
def test_nothing_that_the_user_wrote_is_lost(pod: JSON) -> None:
    after = injected(pod, ALL)
    assert _without_additions(pod, after), (pod, after)


def _without_additions(before: object, after: object) -> bool:
    """Return whether ``after`` is ``before`` and more: the rule for every map, list and value."""
    if isinstance(before, dict) and isinstance(after, dict):
        return all(key in after and _kept(key, value, after[key]) for key, value in before.items())
    if isinstance(before, list) and isinstance(after, list):
        rest = iter(after)
        return all(any(_without_additions(item, other) for other in rest) for item in before)
    return before == after


def _kept(key: str, before: object, after: object) -> bool:
    """Allow what is meant to change: a default policy for names, a list that grows in a string."""
    if key == "dnsPolicy" and before == "ClusterFirst":
        return True
    if key == "hostNetwork":
        return before is False or after is True
    if key == "k8s.v1.cni.cncf.io/networks":
        return str(before).replace(" ", "").strip("[]") in str(after).replace(" ", "")
    return before is None or _without_additions(before, after)
