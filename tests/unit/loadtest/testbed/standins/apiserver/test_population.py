"""Objects that a simulated API server has from the beginning."""

from pathlib import Path

import pytest

from loadtest.testbed.client import pods
from loadtest.testbed.client.api import Api
from loadtest.testbed.client.nodes import node
from loadtest.testbed.standins.apiserver import population
from loadtest.testbed.standins.apiserver.server import ApiServer
from loadtest.testbed.standins.simulated import SimulatedPlane

NODES, PODS = "/api/v1/nodes", "/api/v1/namespaces/default/pods"


def test_a_file_makes_the_same_objects_as_requests_and_no_line_is_lost(tmp_path: Path) -> None:
    file = tmp_path / "population"
    made = [(NODES, node(f"n{i}")) for i in range(3)] + [(PODS, pods.pod("p"))]
    assert population.write(file, made) == 4
    server = ApiServer()
    assert server.populate(file) == 4
    stored = {
        key: entry.decode()
        for collection in server.store.collections()
        for key, entry in collection.entries.items()
    }
    pod = stored["default", "p"]
    assert pod["status"]["phase"] == "Pending"
    assert pod["metadata"]["uid"]
    assert {("", f"n{i}") for i in range(3)} <= stored.keys()


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (b"/api/v1/gadgets\t{}\n", "line 1: .*gadgets"),
        (b"/api/v1/nodes\t{\n", "line 1: .*unrecognized"),
        (b"/api/v1/nodes\t{}\n", "line 1: .*name"),
    ],
)
def test_a_line_that_cannot_be_taken_is_named(tmp_path: Path, line: bytes, words: str) -> None:
    file = tmp_path / "population"
    file.write_bytes(line)
    with pytest.raises(population.PopulationError, match=words):
        ApiServer().populate(file)


async def test_a_simulated_plane_lists_its_population_once_it_is_ready() -> None:
    made = [(NODES, node(f"n{i}")) for i in range(20)]
    async with SimulatedPlane(population=made) as plane, plane.api("admin") as api:
        assert isinstance(api, Api)
        found, _ = await api.list_all(NODES)
        assert [each["metadata"]["name"] for each in found] == sorted(f"n{i}" for i in range(20))
        assert list(plane.directory.glob("population*")) == []
