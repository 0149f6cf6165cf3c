"""Pods of every sort as a list tells them: their JSON, and pages of them in either encoding."""

from collections.abc import Sequence
from typing import Any
from zlib import crc32

import msgspec
import orjson
from hypothesis import strategies as st

from loadtest.testbed.client.pods import INDEX
from loadtest.testbed.standins import packers, packing
from muster.cluster.events import PlanNote
from muster.kube import names, wire
from muster.kube.firstlist.decoders import COLUMNS, LISTED_PODS
from muster.kube.firstlist.podpage import PackedPage
from muster.kube.firstlist.shapes import Shapes
from muster.kube.kinds import multus
from muster.kube.translation.planannotation import plan_for_pod
from muster.kube.writing.podbodies import node_affinity

JSON = dict[str, Any]
PODS = msgspec.json.Decoder(list[wire.Pod])
TIMES = st.sampled_from([None, "2026-01-01T00:00:00Z", "2026-01-02T03:04:05.5+02:00"])
KEY = b"k" * 32  # of plans
PLAN = '{"id":"x","node":"n0","rank":1}'
APART = {
    "podAntiAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            {"topologyKey": names.HOST, "labelSelector": {"matchLabels": {"app": "web"}}}
        ]
    }
}
PINNED = {
    "nodeAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [
                {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}
            ]
        }
    }
}
ODD = (
    *("index", "devices", "spares", "elsewhere", "size", "network", "label", "asks", "ill"),
    *("token", "claim", "early", "free", "form", "rank", "plan", "name", "attached"),
    *("secret", "dash", "itself", "twice", "many", "long", "unsealed", "saved"),
)
ODD_SPARES = {
    "spares": ["n2"],
    "twice": ["n2", "n2"],
    "many": [f"n{n}" for n in range(2, 302)],
    "long": ["n" * 40_000],
}
"""Anybody may write an annotation, so a plan may name what Muster would not."""
LIKE_THE_OTHERS = (
    *("index", "devices", "network", "token", "form", "rank", "plan", "name", "attached"),
    "unsealed",  # these pods have a node: nobody looks at their seals
)
AMOUNTS = st.dictionaries(
    st.sampled_from(["cpu", "memory", "nvidia.com/gpu"]),
    st.sampled_from(["1", "100m", "2Gi", "0", "what"]),
    max_size=2,
)


def some(**optional: st.SearchStrategy[Any]) -> st.SearchStrategy[JSON]:
    return st.fixed_dictionaries({}, optional=optional)


CONTAINERS = st.lists(
    some(
        name=st.sampled_from(["main", "side"]),
        resources=some(requests=AMOUNTS),
        ports=st.sampled_from([[], [{"containerPort": 80}], [{"hostPort": 80}]]),
        restartPolicy=st.just("Always"),
        volumeMounts=st.integers(0, 3).map(lambda n: [{"name": f"token-{n}"}]),
    ),
    max_size=2,
)
STATUSES = st.lists(
    some(
        name=st.just("main"),
        resources=some(requests=AMOUNTS),
        allocatedResources=AMOUNTS,
        containerID=st.integers(0, 3).map(str),
    ),
    max_size=1,
)
METADATA = some(
    generateName=st.just("p-"),
    generation=st.just(2),
    creationTimestamp=TIMES,
    deletionTimestamp=st.just("2026-01-03T00:00:00Z"),
    labels=st.dictionaries(
        st.sampled_from(
            [
                *("app", names.GANG, names.MOVABLE, "statefulset.kubernetes.io/pod-name"),
                *("kueue.x-k8s.io/queue-name", "queue"),
            ]
        ),
        st.sampled_from(["web", "false", "g"]),
        max_size=2,
    ),
    annotations=st.sampled_from(
        [
            {},
            {names.PLAN: PLAN},
            {"kubernetes.io/config.mirror": "x"},
            {names.TERM: "t"},
            {"cni.projectcalico.org/podIP": "10.0.0.1/32"},
            {"cni.projectcalico.org/podIP": "10.0.0.2/32"},
            {"scheduling.volcano.sh/queue-name": "g", "applicationId": "a"},
        ]
    ),
    ownerReferences=st.sampled_from(
        [
            [],
            [{"kind": "DaemonSet", "name": "d", "uid": "d", "controller": True}],
            [
                {
                    "apiVersion": "batch/v1",
                    "kind": "Job",
                    "name": "j",
                    "uid": "j",
                    "controller": True,
                }
            ],
        ]
    ),
    managedFields=st.just([{"manager": "kubelet"}]),
)
SPEC = some(
    schedulerName=st.sampled_from(["default-scheduler", "volcano", "mine"]),
    schedulingGates=st.sampled_from([[], [{"name": names.PLAN_GATE}]]),
    containers=CONTAINERS,
    initContainers=CONTAINERS,
    overhead=AMOUNTS,
    affinity=st.sampled_from([{}, APART, PINNED, APART | PINNED]),
    nodeSelector=st.just({"a": "b"}),
    priority=st.sampled_from([0, 5, 5, 1 << 40]),
    activeDeadlineSeconds=st.sampled_from([60, 3600]),
    volumes=st.integers(0, 3).map(lambda n: [{"name": f"token-{n}"}]),
    tolerations=st.just([{"operator": "Exists"}]),
)
STATUS = some(
    phase=st.sampled_from(["Pending", "Running", "Running", "Succeeded", "Failed"]),
    startTime=TIMES,
    nominatedNodeName=st.just("n2"),
    conditions=st.just([{"type": "PodResizePending", "reason": "Infeasible", "status": "True"}]),
    containerStatuses=STATUSES,
)


def whole(parts: tuple[int, JSON, JSON, JSON, str, str | None]) -> JSON:
    number, meta, spec, status, namespace, node = parts
    own = {"name": f"p{number}", "namespace": namespace, "uid": f"{number:08x}-{'0' * 4}"}
    if number % 3:
        own["uid"] = f"{number:08x}-0000-4000-8000-{number:012x}"
    placed = {} if node is None else {"nodeName": node}
    return {"metadata": meta | own, "spec": spec | placed, "status": status}


def pods(
    metas: st.SearchStrategy[JSON], specs: st.SearchStrategy[JSON], stati: st.SearchStrategy[JSON]
) -> st.SearchStrategy[JSON]:
    namespaces = st.sampled_from(["kube-system", "ns", "closed", "new"])
    nodes = st.sampled_from([None, "n0", "n0", "n1", "n2"])
    return st.tuples(st.integers(0, 99), metas, specs, stati, namespaces, nodes).map(whole)


ANY = pods(METADATA, SPEC, STATUS)
ALIKE = pods(
    st.just({"labels": {"app": "web"}}),
    st.just({"containers": [{"name": "main", "resources": {"requests": {"cpu": "100m"}}}]}),
    st.just({"phase": "Running", "startTime": "2026-01-01T00:00:00Z"}),
)


def pin(node: str, *spares: str) -> JSON:
    """Return the affinity that a release writes."""
    return {"nodeAffinity": orjson.loads(node_affinity(node, spares))}


@st.composite
def members(draw: st.DrawFn) -> list[JSON]:
    """Draw a gang that runs: some of its pods odd in one way or another."""
    gang, oddly = draw(st.sampled_from("gh")), st.sampled_from(("",) * 10 + ODD)
    nodes = st.sampled_from(("n0", "n0", "n1"))
    count, kept = draw(st.integers(1, 8)), draw(st.sampled_from((0, 0, 1, 2)))
    return [
        member(gang, rank, node=draw(nodes), odd=draw(oddly), kept=kept) for rank in range(count)
    ]


def member(gang: str, rank: int, *, node: str = "n0", odd: str = "", kept: int = 0) -> JSON:
    """Return a member that runs; ``kept``: how many spares its plan names, its own ones."""
    # When a pod was made does not change: an early one is not the one that another page tells of.
    number = ord(gang) * 100 + rank + (50 if odd == "early" else 0)
    index = {INDEX: "x" if odd == "index" else str(rank)}
    devices = {node: ["gpu-0"]} if odd == "devices" else {}
    own = [f"{node}{rank}-{n}" for n in range(kept)]
    spares = [node] if odd == "itself" else ODD_SPARES.get(odd, own)
    at = "n9" if odd == "elsewhere" else node
    note = PlanNote(
        f"plan-{'y' if odd == 'plan' else gang}", at, tuple(spares), devices,
        rank=7 if odd == "rank" else rank, generation=3,
    )  # fmt: skip
    plan = plan_for_pod(note, f"{gang}-{number}", KEY if odd != "unsealed" else b"")
    size = "9" if odd == "size" else "8"
    notes = index | {names.GANG_SIZE: size}
    notes[names.PLAN] = plan.replace('"id":', ' "id":') if odd == "form" else plan
    if odd == "network":
        notes["cni.projectcalico.org/podIP"] = f"10.0.0.{rank}"
    if odd == "saved":
        notes[names.CHECKPOINTED_AT] = f"2026-05-01T12:00:0{rank}Z"
    if odd == "attached":
        notes[multus.ANNOTATION] = "[]"
    if odd == "label":
        index[names.ROLE] = "leader"
    pod = whole((number, {}, {}, {"phase": "Running"}, "ns", node))
    requests = {"nvidia.com/gpu": "2" if odd == "asks" else "1"}
    conditions = [{"type": names.DEVICES_HEALTHY, "status": "False"}] if odd == "ill" else []
    token = {"token": "abcde", "secret": "ABCDE", "dash": "ab-de"}.get(odd, f"{number:05d}")
    volumes: list[JSON] = [{"name": f"kube-api-access-{token}"}]
    if odd == "claim":
        volumes.append({"name": "data", "persistentVolumeClaim": {"claimName": f"data-{rank}"}})
    pod["metadata"] |= {
        "name": f"p{'é' if odd == 'name' else ''}{number}",
        "uid": f"{number:08x}-0000-4000-8000-{number:012x}",
        "labels": index | {names.GANG: gang},
        "annotations": notes,
        "creationTimestamp": f"2026-01-01T00:00:0{1 if odd == 'early' else 3}Z",
    }
    pod["spec"] |= {
        "containers": [{"name": "main", "resources": {"requests": requests}}],
        "affinity": {} if odd == "free" else pin(at, *spares),
        "volumes": volumes,
    }
    pod["status"] |= {"conditions": conditions, "startTime": f"2026-01-02T00:00:0{rank % 10}Z"}
    return pod


def in_json(pods: list[JSON]) -> Sequence[wire.Pod]:
    return PODS.decode(orjson.dumps(pods))


def in_protobuf(pods: list[JSON]) -> PackedPage:
    items = [packers.packed("Pod", pod) for pod in pods]
    page = next(COLUMNS[LISTED_PODS].pages(packing.page("PodList", {}, items))).items
    assert isinstance(page, PackedPage)
    return page


def shaped(pods: list[JSON], shapes: Shapes | None = None) -> PackedPage:
    """Return a page as it is read where there are thousands of pods on it.

    ``shapes``: those of the pages before it.
    """
    page = in_protobuf(pods)
    return PackedPage(page._buffer, page._items, shapes or Shapes(fewest=2))


def stored(pod: JSON) -> JSON:
    """Return the pod as an API server keeps it: priorities of 32 bits, times in seconds."""
    text = orjson.dumps(pod).replace(b"2026-01-02T03:04:05.5+02:00", b"2026-01-02T01:04:05Z")
    found: JSON = orjson.loads(text.replace(b"%d" % (1 << 40), b"%d" % -7))
    return found


STRANGERS = st.lists(st.one_of(ALIKE, ALIKE, ANY), max_size=20)
PAGE = st.lists(st.one_of(STRANGERS, members(), members()), max_size=4).map(
    lambda parts: [versioned(pod) for part in parts for pod in part]
)


def versioned(pod: JSON) -> JSON:
    """Return the pod with a version of its own: the same one for the same pod only."""
    number = crc32(orjson.dumps(pod))
    text = ("", "v1", f"1{number:018d}")[number % 20] if number % 20 < 3 else str(number)
    return pod | {"metadata": pod["metadata"] | {"resourceVersion": text}}
