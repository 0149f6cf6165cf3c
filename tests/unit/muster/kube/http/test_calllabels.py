"""What requests are called in metrics: bounded by the resources there are, whatever names say."""

from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.kube.http.calllabels import verb_and_resource
from muster.kube.resources import NODES, PODS, Resource
from muster.kube.wire import Pod

GROUPS = Resource("scheduling.run.ai", "v2alpha2", "podgroups", Pod)
NAMES = st.text(min_size=1, max_size=20).filter(lambda text: text != ".")


@pytest.mark.parametrize(
    ("method", "path", "called"),
    [
        ("GET", PODS.path(), ("list", "pods")),
        ("GET", PODS.path(namespace="a"), ("list", "pods")),
        ("GET", NODES.path("n1"), ("get", "nodes")),
        ("GET", "/api/v1/namespaces", ("list", "namespaces")),
        ("GET", "/api/v1/namespaces/namespaces", ("get", "namespaces")),
        ("PATCH", PODS.path("p", namespace="a"), ("patch", "pods")),
        ("PATCH", PODS.path("p", namespace="a", subresource="status"), ("patch", "pods/status")),
        ("POST", PODS.path("p", namespace="a", subresource="binding"), ("create", "pods/binding")),
        (
            "PATCH",
            GROUPS.path("g", namespace="a", subresource="status"),
            ("patch", "podgroups.scheduling.run.ai/status"),
        ),
        ("PUT", GROUPS.path("g", namespace="a"), ("update", "podgroups.scheduling.run.ai")),
        ("DELETE", GROUPS.path("g", namespace="a"), ("delete", "podgroups.scheduling.run.ai")),
        ("GET", "/version", ("get", "other")),
    ],
)
def test_a_request_is_called_by_its_verb_and_resource(
    method: str, path: str, called: tuple[str, str]
) -> None:
    assert verb_and_resource(method, path) == called


def test_a_watch_is_not_a_list() -> None:
    assert verb_and_resource("GET", PODS.path(), watches=True) == ("watch", "pods")


@given(name=NAMES, namespace=NAMES)
def test_no_name_of_an_object_becomes_a_part_of_the_label(name: str, namespace: str) -> None:
    for subresource in ("", "status"):
        path = GROUPS.path(name, namespace=quote(namespace, safe=""), subresource=subresource)
        suffix = f"/{subresource}" if subresource else ""
        assert verb_and_resource("PATCH", path) == ("patch", f"podgroups.scheduling.run.ai{suffix}")
