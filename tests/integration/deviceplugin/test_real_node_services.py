"""The Services that stand in for kube-proxy and CoreDNS on a connected node: their names."""

import asyncio
import socket
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.kubelets.realnode import services

LABEL = st.text("abcdefghijklmnopqrstuvwxyz0123456789-", min_size=1, max_size=20)
A, AAAA, IN = 1, 28, 1


def question(name: str, kind: int = A) -> bytes:
    labels = b"".join(bytes([len(part)]) + part.encode() for part in name.split("."))
    return (
        struct.pack(">HHHHHH", 77, 0x0100, 1, 0, 0, 0)
        + labels
        + b"\0"
        + struct.pack(">HH", kind, IN)
    )


@given(service=LABEL, namespace=LABEL)
def test_a_service_has_one_address_under_its_whole_name(service: str, namespace: str) -> None:
    names = {f"{service}.{namespace}": "10.96.7.9"}
    asked = question(f"{service}.{namespace}.svc.cluster.local")
    said = services.answer(asked, names)
    number, flags, questions, answers, *_ = struct.unpack_from(">HHHHHH", said)
    assert (number, flags & 0xF, questions, answers) == (77, 0, 1, 1)
    assert said[12 : len(asked)] == asked[12:]
    assert said[-4:] == bytes([10, 96, 7, 9])


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("muster-extender.muster-system.svc.cluster.local", 0),
        ("muster-extender.muster-system.svc.muster-system.svc.cluster.local", 3),
        ("other.muster-system.svc.cluster.local", 3),
        ("example.com", 3),
    ],
)
def test_only_services_exist_and_they_have_no_address_of_another_type(name: str, code: int) -> None:
    names = {"muster-extender.muster-system": "10.96.0.80"}
    said = services.answer(question(name, AAAA), names)
    _, flags, _, answers, *_ = struct.unpack_from(">HHHHHH", said)
    assert (flags & 0xF, answers) == (code, 0)


@pytest.mark.asyncio
async def test_a_question_over_the_network_is_answered() -> None:
    known = services.Services({"muster-extender.muster-system": "10.96.0.80"})
    serving = await services.serve_names(known, ("127.0.0.1", 0))
    loop = asyncio.get_running_loop()
    with socket.socket(type=socket.SOCK_DGRAM) as client:
        client.setblocking(False)
        client.connect(serving.get_extra_info("sockname"))
        await loop.sock_sendall(client, question("muster-extender.muster-system.svc.cluster.local"))
        async with asyncio.timeout(5):
            said = await loop.sock_recv(client, 512)
    serving.close()
    assert said[-4:] == bytes([10, 96, 0, 80])


def test_slices_give_ready_endpoints_alone() -> None:
    part = {
        "metadata": {
            "name": "web-x",
            "namespace": "n",
            "labels": {"kubernetes.io/service-name": "web"},
        },
        "ports": [{"name": "https", "port": 9443}],
        "endpoints": [
            {"addresses": ["198.19.0.2"], "conditions": {"ready": True}},
            {"addresses": ["198.19.0.3"], "conditions": {"ready": False}},
        ],
    }
    assert list(services._ready(part)) == [(("n", "web", "https"), ("198.19.0.2", 9443))]
