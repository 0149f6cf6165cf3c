"""Nodes of the first list: taken together, and one by one where one of them is odd.

::

    rack r1 ── r1-0 … r1-79       one of them has less than nothing of something: no node can
"""

import pytest
from support.apifaults import api_server
from support.extenders import rack_nodes, running_extender

from extender.config import ExtenderConfig
from loadtest.api import JSON, Api

CONFIG = ExtenderConfig(debounce_seconds=0.0)


async def listed(nodes: list[JSON]) -> tuple[set[str], str]:
    """Start an extender on a cluster with these nodes; return those it knows, and its metrics."""
    async with api_server() as (server, url):
        async with Api(url) as api:
            for node in nodes:
                await api.create("/api/v1/nodes", node)
        async with running_extender(server, url, CONFIG) as cluster:
            state = cluster.extender.engine.state
            found = {name for name in state.snapshot().nodes.names if name is not None}
            async with cluster.http.get("/metrics") as response:
                metrics = await response.text()
    return found, metrics


@pytest.mark.parametrize("odd", [None, 7, 0, 79])
async def test_one_odd_node_keeps_no_other_out_of_the_first_list(odd: int | None) -> None:
    nodes = rack_nodes({"r1": 80})
    if odd is not None:
        nodes[odd]["status"]["allocatable"]["example.com/tape"] = "-1"
    found, metrics = await listed(nodes)
    assert found == {node["metadata"]["name"] for i, node in enumerate(nodes) if i != odd}
    told = 'muster_unreadable_objects_total{resource="nodes"} 1.0'
    assert (told in metrics) == (odd is not None)
