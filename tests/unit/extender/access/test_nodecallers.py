"""The pods of a node are for that node's device plugin, over real TLS."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from support.extenders.door import Door, door

from extender.config.callers import CallersSettings, NamedCallers, Tokens, problems

PODS = "/v1/nodes/n1/pods"
NODE = NamedCallers(users=("plugin",))


@pytest.fixture
async def entry(tmp_path: Path) -> AsyncIterator[Door]:
    async with door(tmp_path, CallersSettings(Tokens(), node=NODE)) as it:
        yield it


async def test_a_plugin_lists_the_pods_of_the_node_that_its_token_names(entry: Door) -> None:
    status, body, _ = await entry.ask(PODS, token="t-plugin")
    assert status == 200
    assert body["kind"] == "PodList"
    assert body["items"] == []
    assert body["metadata"]["resourceVersion"]


async def test_a_plugin_is_refused_the_pods_of_another_node_and_both_are_named(entry: Door) -> None:
    status, body, _ = await entry.ask("/v1/nodes/n2/pods", token="t-plugin")
    assert status == 403
    assert body["message"] == (
        "pods: node 'n2' is asked about, and the token of 'plugin' is for node 'n1': ask about "
        "that one (the plugin's --node-name)"
    )
    assert entry.refused() == {("pods", "forbidden"): 1.0}


async def test_a_token_that_names_no_node_is_refused_with_what_to_use(entry: Door) -> None:
    status, body, _ = await entry.ask(PODS, token="t-plugin-of-no-node")
    assert status == 403
    assert (
        "names no node: use the one that the kubelet makes for the plugin's pod"
        in (body["message"])
    )


@pytest.mark.parametrize("token", ["t-other-of-n1", "t-admin", "t-nobody"])
async def test_no_other_account_is_shown_them_be_it_on_that_node(entry: Door, token: str) -> None:
    status, body, _ = await entry.ask(PODS, token=token)
    assert status == 403
    assert "needs a name in callers.node" in body["message"]


async def test_neither_a_certificate_nor_nothing_is_enough(entry: Door) -> None:
    status, body, _ = await entry.ask(PODS, entry.ours.issue("plugin"))
    assert status == 403
    assert "callers.node" in body["message"]
    status, body, _ = await entry.ask(PODS)
    assert status == 401
    assert "send the bearer token of the device plugin's pod on that node" in body["message"]


@pytest.mark.parametrize("name", ["..%2Fn1", "n1%20", "n1,metadata.name=a", "n1%26watch=1"])
async def test_what_no_node_can_be_called_selects_nothing(entry: Door, name: str) -> None:
    status, body, _ = await entry.ask(f"/v1/nodes/{name}/pods", token="t-plugin")
    assert status in (400, 404)
    assert "items" not in body


async def test_without_the_section_nobody_is_shown_them(tmp_path: Path) -> None:
    async with door(tmp_path, CallersSettings(Tokens())) as it:
        assert (await it.ask(PODS, token="t-plugin"))[0] == 403
        assert (await it.ask(PODS, it.ours.issue("plugin")))[0] == 403


def test_callers_that_could_never_be_admitted_are_named_in_the_configuration() -> None:
    node = NamedCallers(certificates=("plugin",), users=("plugin",))
    found = problems(CallersSettings(Tokens(), node=node), "10.0.0.1", tls=True, certificates=True)
    assert len(found) == 1
    assert "a certificate names no node" in found[0]
    node = NamedCallers(groups=("system:serviceaccounts",))
    found = problems(CallersSettings(Tokens(), node=node), "10.0.0.1", tls=True, certificates=True)
    assert any("callers.node.groups" in each for each in found)
