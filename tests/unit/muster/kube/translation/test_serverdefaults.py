"""Defaults that plans depend on; tests/integration/kube compares them with the API server's."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.kube.translation.serverdefaults import with_defaults

JSON = dict[str, Any]
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers(-1, 9) | st.text(max_size=2),
    lambda inner: st.lists(inner, max_size=2)
    | st.dictionaries(
        st.sampled_from([
            "containers", "initContainers", "hostNetwork", "ports", "resources", "limits",
            "requests", "containerPort", "hostPort", "cpu", "hugepages-2Mi",
        ]),
        inner,
        max_size=4,
    ),
    max_leaves=20,
)  # fmt: skip


@given(st.dictionaries(st.sampled_from(["containers", "hostNetwork", "resources"]), ANYTHING))
def test_whatever_a_spec_holds_it_is_defaulted_once(spec: JSON) -> None:
    once = with_defaults(spec)
    assert with_defaults(once) == once


@given(ANYTHING)
def test_what_is_no_spec_stays_as_it_is(value: object) -> None:
    if not isinstance(value, dict):
        assert with_defaults(value) == value


@pytest.mark.parametrize("within", ["containers", "initContainers"])
@pytest.mark.parametrize("host_network", [True, False])
def test_only_on_the_hosts_network_is_a_port_one_of_the_host(
    within: str, *, host_network: bool
) -> None:
    ports = [{"containerPort": 80}, {"containerPort": 81, "hostPort": 9}]
    spec: JSON = {within: [{"ports": ports}], "hostNetwork": host_network}
    made: Any = with_defaults(spec)
    found = [port.get("hostPort") for port in made[within][0]["ports"]]
    assert found == ([80, 9] if host_network else [None, 9])


def test_a_pods_own_limit_stands_only_for_what_no_container_requests() -> None:
    limits = {"cpu": "9", "memory": "9", "hugepages-2Mi": "8Mi"}
    inner = {"limits": {"cpu": "2"}, "requests": {"hugepages-2Mi": "2Mi"}}
    spec: JSON = {"containers": [{"resources": inner}], "resources": {"limits": limits}}
    made: Any = with_defaults(spec)
    assert made["resources"]["requests"] == {"memory": "9", "hugepages-2Mi": "8Mi"}
