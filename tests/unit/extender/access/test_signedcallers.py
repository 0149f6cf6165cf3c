"""Callers behind the API server's proxy: a token in a header of its own, or a signed request.

::

    ours/     tls.clientCaFile: kube-scheduler's certificate, and nobody's of the cluster
    cluster/  the cluster's client CA: anna (may list pods of team-a), kube-scheduler (a namesake)
    proxy ──► one connection for all of them, without a certificate
"""

import asyncio
import time
from collections.abc import AsyncIterator, Mapping
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.apiservers.reviewing import Account
from support.extenders.authorities import Authority, Pair
from support.extenders.door import Door, door

from extender.config.callers import CallersSettings, NamedCallers, Readers, Tokens
from muster.apiwire import callersignature
from muster.cli.kubeconfig.credential import Credential
from muster.cli.reach import identity
from muster.cli.reach.exchange import SentRequest

CALLERS = CallersSettings(
    Tokens(cache_seconds=0),
    NamedCallers(certificates=("kube-scheduler",), users=("scheduler",)),
    Readers(certificates=("prometheus",)),
    reserve=NamedCallers(certificates=("muster-webhook",)),
)
EXPLAIN = "/v1/explain/team-a/x-0"


@pytest.fixture
def cluster(tmp_path: Path) -> Authority:
    return Authority(tmp_path / "cluster", "kubernetes")


@pytest.fixture
async def proxied(tmp_path: Path, cluster: Authority) -> AsyncIterator[Door]:
    async with door(tmp_path, CALLERS) as it:
        it.server.client_ca = cluster.ca.read_text()
        it.server.accounts["t-anna"] = Account("anna", sees=["team-a"])
        yield it


def signed(pair: Pair, path: str, body: bytes | None = None) -> dict[str, str]:
    """Return what `kubectl muster` sends for the holder of a certificate."""
    credential = Credential(
        "x", certificate=pair.certificate.read_bytes(), key=pair.key.read_bytes()
    )
    return identity.shown(credential, SentRequest(path, {}, body), proxied=True)


async def ask(
    it: Door, path: str, headers: Mapping[str, str], body: bytes | None = None
) -> tuple[int, str]:
    async with (
        it.session() as session,
        session.request("GET" if body is None else "POST", path, headers=headers, data=body) as got,
    ):
        return got.status, await got.text()


async def test_a_token_in_the_other_header_reads_and_never_schedules(proxied: Door) -> None:
    for token, path, status in (
        ("t-prometheus", "/metrics", 200),
        ("t-anna", EXPLAIN, 404),  # let in, and there is no such pod
        ("t-nobody", EXPLAIN, 403),
        ("made-up", "/metrics", 401),
    ):
        headers = {callersignature.TOKEN: f"Bearer {token}"}
        assert (await ask(proxied, path, headers))[0] == status
    headers = {callersignature.TOKEN: "Bearer t-scheduler"}
    assert (await ask(proxied, "/v1/extender/bind", headers, b"{}"))[0] == 401
    assert await proxied.bind(token="t-scheduler") == 400  # in its own header it does


async def test_two_credentials_at_once_are_refused(proxied: Door, cluster: Authority) -> None:
    token = {callersignature.TOKEN: "Bearer t-prometheus"}
    shown = signed(cluster.issue("anna"), "/metrics")
    usual = {"Authorization": "Bearer t-prometheus"}
    for both in (token | usual, token | shown, usual | shown):
        status, text = await ask(proxied, "/metrics", both)
        assert status == 401
        assert "send one of them" in text


async def test_callers_on_one_connection_are_each_judged_by_what_they_show(
    proxied: Door, cluster: Authority
) -> None:
    """The API server sends requests of all its users over one connection."""
    async with proxied.session() as session:
        for headers, status in (
            (signed(cluster.issue("anna"), EXPLAIN), 404),
            ({}, 401),
            ({callersignature.TOKEN: "Bearer t-nobody"}, 403),
            ({callersignature.TOKEN: "Bearer t-anna"}, 404),
            (signed(cluster.issue("berta"), EXPLAIN), 403),
        ):
            async with session.get(EXPLAIN, headers=headers) as reply:
                assert reply.status == status


async def test_a_signature_holds_for_its_request_alone(proxied: Door, cluster: Authority) -> None:
    anna = cluster.issue("anna")
    assert (await ask(proxied, EXPLAIN, signed(anna, EXPLAIN)))[0] == 404
    other = "/v1/explain/team-a/y-0"
    for path, headers, body in (
        (other, signed(anna, EXPLAIN), None),
        (f"{EXPLAIN}?kind=gang", signed(anna, EXPLAIN), None),
        ("/v1/whatif", signed(anna, "/v1/whatif", b'{"gang": "a"}'), b'{"gang": "b"}'),
        ("/v1/whatif", signed(anna, "/v1/whatif"), b""),
    ):
        status, text = await ask(proxied, path, headers, body)
        assert status == 401, text


async def test_a_body_that_was_signed_is_read_by_the_route(
    proxied: Door, cluster: Authority
) -> None:
    proxied.server.accounts["t-reader"] = Account("reader", may_get=["/v1/whatif"])
    body = b'{"gang": "team-a/absent"}'
    headers = signed(cluster.issue("reader"), "/v1/whatif", body)
    status, text = await ask(proxied, "/v1/whatif", headers, body)
    assert status == 400
    assert "team-a/absent" in text


async def test_only_the_clusters_client_ca_is_believed_and_only_its_own_signatures(
    proxied: Door, cluster: Authority, tmp_path: Path
) -> None:
    namesake = Authority(tmp_path / "namesake", "kubernetes")
    for pair in (proxied.ours.issue("anna"), namesake.issue("anna")):
        status, text = await ask(proxied, EXPLAIN, signed(pair, EXPLAIN))
        assert status == 401
        assert "not signed by the cluster's client CA" in text
    anna, berta = cluster.issue("anna"), cluster.issue("berta")
    forged = signed(Pair(anna.certificate, berta.key), EXPLAIN)
    status, text = await ask(proxied, EXPLAIN, forged)
    assert status == 401
    assert "not of this request by the certificate's key" in text


@pytest.mark.parametrize("late_s", [-120, 120])
async def test_a_signature_is_good_for_a_minute(
    proxied: Door, cluster: Authority, late_s: int
) -> None:
    headers = signed(cluster.issue("anna"), EXPLAIN)
    signers = proxied.extender.parts.gate.signers
    assert signers is not None
    signers.clock = lambda: time.time() + late_s
    status, text = await ask(proxied, EXPLAIN, headers)
    assert status == 401
    assert "compare the clocks" in text


async def test_a_namesake_of_kube_scheduler_in_the_cluster_does_not_schedule_or_reserve(
    proxied: Door, cluster: Authority
) -> None:
    for path in ("/v1/extender/bind", "/v1/extender/filter", "/v1/reservations"):
        for name in ("kube-scheduler", "muster-webhook", "scheduler"):
            headers = signed(cluster.issue(name, "system:masters"), path, b"{}")
            assert (await ask(proxied, path, headers, b"{}"))[0] == 401
    # Nor does a name of callers.read.certificates count, which are of our authority.
    headers = signed(cluster.issue("prometheus2"), "/v1/gangs")
    assert (await ask(proxied, "/v1/gangs", headers))[0] == 403


async def test_where_the_cluster_publishes_no_ca_that_is_the_answer(
    proxied: Door, cluster: Authority
) -> None:
    proxied.server.client_ca = ""
    status, text = await ask(proxied, EXPLAIN, signed(cluster.issue("anna"), EXPLAIN))
    assert status == 401
    assert "publishes no CA of client certificates" in text


async def test_no_token_of_the_other_header_is_ever_written_down(
    proxied: Door, caplog: pytest.LogCaptureFixture
) -> None:
    for value in ("Bearer s3cret-token", "s3cret-token", "Basic s3cret-token"):
        _, text = await ask(proxied, "/v1/gangs", {callersignature.TOKEN: value})
        assert "s3cret-token" not in text
    assert "s3cret-token" not in caplog.text


HEADERS = (
    callersignature.CERTIFICATE,
    callersignature.INPUT,
    callersignature.SIGNATURE,
    callersignature.DIGEST,
)


@settings(
    max_examples=15,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(st.data())
def test_a_request_with_any_header_changed_is_refused(tmp_path: Path, data: st.DataObject) -> None:
    """One character replaced, or the header left out: 401, never a failure of ours."""

    async def run() -> None:
        authority = Authority(tmp_path / "cluster", "kubernetes")
        async with door(tmp_path, CALLERS) as it:
            it.server.client_ca = authority.ca.read_text()
            it.server.accounts["t-anna"] = Account("anna", sees=["team-a"])
            anna = authority.issue("anna")
            for _ in range(10):
                headers = signed(anna, EXPLAIN)
                name = data.draw(st.sampled_from(HEADERS))
                value = headers.pop(name)
                if data.draw(st.booleans()):
                    # Not drawn from the length: that changes with the hour.
                    place = data.draw(st.integers(0, 9999)) % len(value)
                    other = data.draw(st.sampled_from('A:=9"z '))
                    if other == value[place] or not (value[:place] + other).strip():
                        continue
                    headers[name] = (value[:place] + other + value[place + 1 :]).strip()
                status, text = await ask(it, EXPLAIN, headers)
                assert status == 401, (name, text)

    asyncio.run(run())
