"""What every integration test ends with: the API objects themselves, judged by nobody of Muster."""

from collections import defaultdict

from kube import names
from loadtest.api import Api
from loadtest.nodes import GPU


async def verify(api: Api) -> None:
    """Expect no gang bound in part and no node given away twice."""
    pods, _ = await api.list_all("/api/v1/pods")
    nodes, _ = await api.list_all("/api/v1/nodes")
    used: dict[str, int] = defaultdict(int)
    members: dict[str, list[bool]] = defaultdict(list)
    for pod in pods:
        node = pod["spec"].get("nodeName", "")
        if gang := pod["metadata"].get("labels", {}).get(names.GANG):
            members[gang].append(bool(node))
        for container in pod["spec"]["containers"]:
            used[node] += int(container["resources"].get("requests", {}).get(GPU, 0))
    assert {g for g, bound in members.items() if any(bound) and not all(bound)} == set()
    room = {n["metadata"]["name"]: int(n["status"]["allocatable"][GPU]) for n in nodes}
    assert {node for node, gpus in used.items() if node and gpus > room.get(node, 0)} == set()
