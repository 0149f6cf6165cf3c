"""The first list of pods, taken a page at a time, against the same pods taken one by one.

::

    JSON ──► JsonPage ───┐
    protobuf ► PackedPage ┴─► ListedPods.take ──► told together ┐
                                    └──► left ──► Feed.pod      ├──► state ═══ state
    JSON ──► wire.Pod ──────────────────────────► Feed.pod ─────┘

Pods of every sort: ours and not, bound and not, ended, resized, with what cannot be read.
"""

from collections.abc import Callable, Hashable
from typing import Any

import msgspec
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry
from support import fingerprint

from cluster.ids import GangKey, PodUid
from cluster.state import ClusterState
from extender.engine import Engine
from extender.feed import Feed
from extender.listing import ListedPods
from extender.metrics import ExtenderMetrics
from extender.pending import PendingPods
from extender.report import Reporter
from extender.siblings import is_quiet
from kube import names, translate, wire
from kube.errors import DecodeError
from kube.events import EventRecorder
from kube.listed import LISTED_PODS, JsonPage, ListedPage, ListedPod
from kube.packedlists import PACKED
from kube.packedpods import PackedPage
from loadtest import packing
from loadtest.pods import INDEX
from workloads.managed import Policy

JSON = dict[str, Any]
ONE = "12345678-1234-4234-8234-123456789012"
TWO = f"{ONE}\n{ONE}"  # would pass for two if nobody counted
LISTED = msgspec.json.Decoder(ListedPod)
PLAIN = msgspec.json.Decoder(wire.Pod)
TIMES = st.sampled_from([None, "2026-01-01T00:00:00Z", "2026-01-02T03:04:05.5+02:00"])
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
    *("token", "claim", "early", "free"),
)
LIKE_THE_OTHERS = ("index", "devices", "network", "token")
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
    resourceVersion=st.just("7"),
    generation=st.just(2),
    creationTimestamp=TIMES,
    deletionTimestamp=st.just("2026-01-03T00:00:00Z"),
    labels=st.dictionaries(
        st.sampled_from(["app", names.GANG, names.MOVABLE, "statefulset.kubernetes.io/pod-name"]),
        st.sampled_from(["web", "false", "g"]),
        max_size=2,
    ),
    annotations=st.sampled_from(
        [{}, {names.PLAN: PLAN}, {"kubernetes.io/config.mirror": "x"}, {names.TERM: "t"}]
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


class World:
    def __init__(self) -> None:
        self.state = ClusterState("test", levels=names.DEFAULT_LEVELS)
        engine = Engine(self.state, lambda: 1.0)
        waiting, metrics = PendingPods(), ExtenderMetrics(CollectorRegistry())
        recorder = EventRecorder(None, controller="test", instance="test")  # type: ignore[arg-type]
        reporter = Reporter(self.state, waiting, recorder, metrics)
        self.feed = Feed(engine, Policy(), names.DEFAULT_LEVELS, waiting, reporter)
        self.arrived: list[object] = []
        self.feed.arrived = self.come
        self.feed.attached = lambda *about: self.arrived.append(about)
        self.feed.expected = self.arrived.append
        self.listed = ListedPods(engine, self.feed)
        for name, managed in (("ns", "true"), ("closed", "false"), ("kube-system", "true")):
            meta = wire.ObjectMeta(name=name, labels={names.MANAGED: managed})
            self.feed.namespace(wire.Namespace(metadata=meta))
        amounts = {"cpu": "3", "memory": "64Gi", "nvidia.com/gpu": "8", "pods": "40"}
        for name in ("n0", "n1"):
            meta = wire.ObjectMeta(name=name, labels={names.HOST: name})
            status = wire.NodeStatus(allocatable=amounts)
            self.feed.node(wire.Node(metadata=meta, status=status))

    def come(self, uid: PodUid, pod: wire.Pod, gang: GangKey | None) -> None:
        if not (gang and pod.spec.node_name and is_quiet(pod)):
            self.arrived.append((uid, pod, gang))

    def take(self, pod: wire.Pod) -> None:
        try:
            self.feed.pod(pod)
        except ValueError:
            self.arrived.append(pod.metadata.uid)

    def look(self) -> Hashable:
        self.state.validate()
        return fingerprint.content(self.state.snapshot())


@given(pod=ANY)
def test_a_listed_pod_is_the_pod(pod: JSON) -> None:
    body = orjson.dumps(pod)
    assert LISTED.decode(body).pod() == PLAIN.decode(body)


def pin(*nodes: str) -> JSON:
    terms = [
        {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}
        for node in nodes
    ]
    required = {"nodeSelectorTerms": terms}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}


@st.composite
def members(draw: st.DrawFn) -> list[JSON]:
    """Draw a gang that runs: some of its pods odd in one way or another."""
    gang, oddly = draw(st.sampled_from("gh")), st.sampled_from(("",) * 10 + ODD)
    nodes = st.sampled_from(("n0", "n0", "n1"))
    count = draw(st.integers(1, 8))
    return [member(gang, rank, node=draw(nodes), odd=draw(oddly)) for rank in range(count)]


def member(gang: str, rank: int, *, node: str = "n0", odd: str = "") -> JSON:
    number = ord(gang) * 100 + rank
    index = {INDEX: "x" if odd == "index" else str(rank)}
    devices = {node: ["gpu-0"]} if odd == "devices" else {}
    spares = ["n2"] if odd == "spares" else []
    at = "n9" if odd == "elsewhere" else node
    plan = {"id": f"plan-{gang}", "node": at, "rank": rank, "devices": devices, "spares": spares}
    size = "9" if odd == "size" else "8"
    notes = index | {names.PLAN: orjson.dumps(plan).decode(), names.GANG_SIZE: size}
    if odd == "network":
        notes["cni.projectcalico.org/podIP"] = f"10.0.0.{rank}"
    if odd == "label":
        index[names.ROLE] = "leader"
    pod = whole((number, {}, {}, {"phase": "Running"}, "ns", node))
    requests = {"nvidia.com/gpu": "2" if odd == "asks" else "1"}
    conditions = [{"type": names.DEVICES_HEALTHY, "status": "False"}] if odd == "ill" else []
    token = "abcde" if odd == "token" else f"{number:05d}"
    volumes: list[JSON] = [{"name": f"kube-api-access-{token}"}]
    if odd == "claim":
        volumes.append({"name": "data", "persistentVolumeClaim": {"claimName": f"data-{rank}"}})
    pod["metadata"] |= {
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
    pod["status"] |= {"conditions": conditions, "startTime": f"2026-01-02T00:00:0{rank}Z"}
    return pod


def in_json(pods: list[JSON]) -> ListedPage:
    return JsonPage([LISTED.decode(orjson.dumps(pod)) for pod in pods])


def in_protobuf(pods: list[JSON]) -> ListedPage:
    items = [packing.packed("Pod", pod) for pod in pods]
    page = next(PACKED[LISTED_PODS].pages(packing.page("PodList", {}, items))).items
    assert isinstance(page, PackedPage)
    return page


def stored(pod: JSON) -> JSON:
    """Return the pod as an API server keeps it: priorities of 32 bits, times in seconds."""
    text = orjson.dumps(pod).replace(b"2026-01-02T03:04:05.5+02:00", b"2026-01-02T01:04:05Z")
    found: JSON = orjson.loads(text.replace(b"%d" % (1 << 40), b"%d" % -7))
    return found


STRANGERS = st.lists(st.one_of(ALIKE, ALIKE, ANY), max_size=20)
PAGE = st.lists(st.one_of(STRANGERS, members(), members()), max_size=4).map(
    lambda parts: [pod for part in parts for pod in part]
)


@given(pages=st.lists(PAGE, max_size=3))
def test_pages_of_a_list_are_the_same_as_its_pods_one_by_one(pages: list[list[JSON]]) -> None:
    both_ways(pages, in_json)


@given(pages=st.lists(PAGE.map(lambda page: list(map(stored, page))), max_size=3))
def test_so_are_pages_in_protobuf(pages: list[list[JSON]]) -> None:
    both_ways(pages, in_protobuf)


def both_ways(pages: list[list[JSON]], read: Callable[[list[JSON]], ListedPage]) -> None:
    one, many = World(), World()
    for pods in pages:
        page = read(pods)
        left = many.listed.take(page)
        for place in [*(n for n in range(len(pods)) if n not in left), *left]:
            one.take(PLAIN.decode(orjson.dumps(pods[place])))
        for place in left:
            assert page.pod(place) == PLAIN.decode(orjson.dumps(pods[place]))
            many.take(page.pod(place))
        assert many.look() == one.look()
        assert many.arrived == one.arrived


@pytest.mark.parametrize("read", [in_json, in_protobuf])
def test_pods_of_one_owner_are_judged_once_and_told_together(
    read: Callable[[list[JSON]], ListedPage],
) -> None:
    world = World()
    page = [
        whole((n, {"annotations": {}}, {}, {"phase": "Running"}, "kube-system", "n0"))
        for n in range(30)
    ]
    assert not world.listed.take(read(page))
    assert len(world.state.snapshot().nodes.pods_on(0)) == 30


@pytest.mark.parametrize("read", [in_json, in_protobuf])
def test_a_closed_namespace_that_opens_is_judged_anew(
    read: Callable[[list[JSON]], ListedPage],
) -> None:
    world = World()
    asking = {"containers": [{"resources": {"requests": {"nvidia.com/gpu": "1"}}}]}
    page = [whole((n, {}, asking, {"phase": "Running"}, "closed", "n0")) for n in (1, 2)]
    assert not world.listed.take(read(page[:1]))
    meta = wire.ObjectMeta(name="closed", labels={})
    world.feed.namespace(wire.Namespace(metadata=meta))
    assert world.listed.take(read(page[1:])) == [0]


def test_members_of_a_gang_are_judged_once_and_told_together() -> None:
    one, many = World(), World()
    page = [member("g", rank) for rank in range(8)]
    assert not many.listed.take(in_protobuf(page))
    for pod in page:
        one.take(PLAIN.decode(orjson.dumps(pod)))
    assert many.look() == one.look()
    gang = many.state.gang(GangKey("muster/ns/g"))
    assert gang is not None
    assert gang.spec is not None
    assert (len(gang.bound), gang.spec.size) == (8, 8)


@pytest.mark.parametrize("odd", ODD)
def test_a_member_of_which_more_has_to_be_read_goes_its_own_way(odd: str) -> None:
    page = [member("g", rank, odd=odd if rank == 4 else "") for rank in range(8)]
    left = World().listed.take(in_protobuf(page))
    assert left == ([] if odd in LIKE_THE_OTHERS else [4])


def test_what_is_no_pod_is_named() -> None:
    listed = LISTED.decode(b'{"metadata":{"name":"p","namespace":"ns","labels":[1]}}')
    with pytest.raises(DecodeError, match="ns/p"):
        listed.pod()


@given(
    st.lists(
        st.one_of(
            st.uuids().map(str),
            st.sampled_from(["", "x", "A" * 36, TWO]),
        )
    )
)
def test_many_uids_are_read_as_one_is(texts: list[str]) -> None:
    assert translate.pod_uids(texts) == list(map(translate.pod_uid, texts))
