"""Who is let in where, over real TLS, with the API server's answers on demand.

::

    ours/   signs the extender's certificate and is its clientCaFile
            kube-scheduler, anna (O=sre), prometheus
    other/  signs kube-scheduler, too: a stranger's

    tokens  prometheus (RBAC: get /metrics)   admin (named in callers.read)
            scheduler (named in callers.schedule)   nobody (RBAC: nothing)
"""

import asyncio
import datetime as dt
import gc
import logging
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest
from support.apiservers.apifaults import Fault
from support.extenders.authorities import Authority
from support.extenders.door import Door, door
from support.extenders.extenders import until

from extender.access import accesscheck
from extender.access.accesscheck import LOGGED_PER_MINUTE
from extender.access.callerrules import Area
from extender.config.callers import CallersSettings, NamedCallers, Readers, Tokens

VERBS = ("filter", "prioritize", "preempt", "bind")
READS = (
    *("/v1/status", "/v1/gangs", "/v1/explain/default/a"),
    *("/v1/story/pod/default/a", "/metrics"),
)
OPEN = ("/livez", "/readyz")
SCHEDULE = NamedCallers(certificates=("kube-scheduler",), users=("scheduler",))
READ = Readers(certificates=("prometheus",), organizations=("sre",), groups=("admins",))
RESERVE = NamedCallers(certificates=("muster-webhook",), users=("webhook",))
TOKENS = Tokens()


@pytest.fixture
async def both(tmp_path: Path) -> AsyncIterator[Door]:
    """Certificates and tokens, and lists that name some of them."""
    async with door(tmp_path, CallersSettings(TOKENS, SCHEDULE, READ, reserve=RESERVE)) as it:
        yield it


async def test_health_is_told_to_everybody_and_nothing_else_is(both: Door) -> None:
    for path in OPEN:
        assert (await both.ask(path))[0] == 200
    for path in READS:
        status, body, headers = await both.ask(path)
        assert status == 401
        assert "nothing shows who is calling" in body["error"]
        assert headers["WWW-Authenticate"] == 'Bearer realm="muster"'
    for verb in VERBS:
        status, body, _ = await both.ask(f"/v1/extender/{verb}", method="POST")
        assert status == 401
        assert body["Error"].startswith(f"{verb}: nothing shows who is calling")
    assert both.refused() == {
        (route, "nobody"): 1.0
        for route in (*VERBS, "status", "gangs", "explain", "story", "metrics")
    }
    assert both.server.reviews == []


async def test_a_scheduler_schedules_and_does_not_read_and_a_reader_the_other_way_round(
    both: Door,
) -> None:
    scheduler, reader = both.ours.issue("kube-scheduler"), both.ours.issue("anna", "sre")
    prometheus = both.ours.issue("prometheus")
    assert await both.bind(scheduler) == 400
    assert await both.bind(reader) == 403
    assert await both.bind(prometheus) == 403
    for path in READS[:2]:
        assert (await both.ask(path, reader))[0] == 200
        assert (await both.ask(path, prometheus))[0] == 200
        status, body, _ = await both.ask(path, scheduler)
        assert status == 403
        assert "the certificate of kube-scheduler may not" in body["error"]
        assert "callers.read" in body["error"]
    assert both.refused()["bind", "forbidden"] == 2


async def test_a_certificate_without_a_common_name_is_of_nobody(both: Door) -> None:
    for shown in (both.ours.issue(None), both.ours.issue(None, "kube-scheduler")):
        assert await both.bind(shown) == 403
    status, body, _ = await both.ask("/metrics", both.ours.issue(None))
    assert status == 403
    assert "it has no common name" in body["error"]


async def test_a_strangers_certificate_fails_the_handshake_and_is_counted(
    both: Door, tmp_path: Path
) -> None:
    shown = Authority(tmp_path / "other").issue("kube-scheduler")
    with pytest.raises(aiohttp.ClientError):
        await both.bind(shown)
    await until(lambda: both.refused() == {("handshake", "certificate"): 1.0})


async def test_a_certificate_that_expires_ends_what_its_open_connection_may_do(both: Door) -> None:
    shown = both.ours.issue("kube-scheduler", valid_for=dt.timedelta(minutes=5))
    async with both.session(shown) as session:
        assert (await both.over(session, "/v1/extender/bind", "POST"))[0] == 400
        clock = both.extender.parts.gate.clock
        both.extender.parts.gate.clock = lambda: clock() + 600
        status, body, _ = await both.over(session, "/v1/extender/bind", "POST")
    assert status == 401
    assert body["Error"] == "bind: the certificate of kube-scheduler has expired"
    assert both.refused() == {("bind", "certificate"): 1.0}


async def test_a_connection_is_looked_at_once_and_forgotten_when_it_is_gone(both: Door) -> None:
    admitted = both.extender.parts.gate._admitted[Area.SCHEDULE]
    async with both.session(both.ours.issue("kube-scheduler")) as session:
        for _ in range(3):
            assert (await both.over(session, "/v1/extender/bind", "POST"))[0] == 400
            assert len(admitted.until) == 1

    def gone() -> bool:
        gc.collect()  # a TLS connection of asyncio is a cycle
        return not admitted.until and not admitted._refs

    await until(gone)
    assert await both.bind() == 401


async def test_rbac_lets_the_owner_of_a_token_read_what_it_may_get_and_no_more(both: Door) -> None:
    assert (await both.ask("/metrics", token="t-prometheus"))[0] == 200
    status, body, _ = await both.ask("/v1/gangs", token="t-prometheus")
    assert status == 403
    assert "user 'prometheus' may not" in body["error"]
    assert "nonResourceURL /v1/gangs" in body["error"]
    assert both.reviews() == {("token", "yes"): 1, ("access", "yes"): 1, ("access", "no"): 1}


@pytest.mark.parametrize(
    "path",
    [
        "/v1/explain/default/..%2F..",
        "/v1/explain/default%2F..%2Fkube-system/a",
        "/v1/explain/default/a%00",
        "/v1/story/pod/default/a%1b[31m",
        "/v1/defrag/%2e%2e%2fdefault/a",
    ],
)
async def test_what_no_object_can_be_called_is_refused_before_anybody_is_asked(
    both: Door, path: str
) -> None:
    for token in ("t-prometheus", "t-admin"):
        status, body, _ = await both.ask(path, token=token)
        assert status == 400
        assert "is no name of an object" in body["error"]
    assert not both.reviews()


async def test_names_in_the_configuration_need_no_rbac(both: Door) -> None:
    for path in READS[:2]:
        assert (await both.ask(path, token="t-admin"))[0] == 200
    assert ("access", "yes") not in both.reviews()


async def test_the_owner_of_a_token_schedules_only_by_name_whatever_rbac_says(both: Door) -> None:
    both.server.accounts["t-admin"].may_get = ["/v1/extender/bind"]
    assert await both.bind(token="t-scheduler") == 400
    assert await both.bind(token="t-admin") == 403
    assert await both.bind(token="t-prometheus") == 403
    assert both.refused() == {("bind", "forbidden"): 2.0}


async def test_room_is_reserved_only_for_those_who_are_named(both: Door) -> None:
    """Nothing is reserved for an empty pod; callers that are admitted get that answer."""
    path, webhook = "/v1/reservations", both.ours.issue("muster-webhook")
    assert (await both.ask(path, webhook, method="POST"))[0] == 200
    assert (await both.ask(path, both.ours.issue("kube-scheduler"), method="POST"))[0] == 403
    assert (await both.ask(path, token="t-prometheus", method="POST"))[0] == 403
    assert (await both.ask(path, method="POST"))[0] == 401
    assert await both.bind(webhook) == 403


@pytest.mark.parametrize(
    "header", ["Bearer made-up", "Bearer", "Basic YTpi", "made-up", "bearer  "]
)
async def test_what_is_no_token_is_401_and_is_not_repeated(
    both: Door, header: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with both.session() as session:
        session.headers["Authorization"] = header
        status, body, headers = await both.over(session, "/v1/extender/bind", "POST")
    assert status == 401
    assert "WWW-Authenticate" in headers
    secret = header.rsplit(maxsplit=1)[-1]
    assert secret in ("Bearer", "bearer") or secret not in body["Error"] + caplog.text
    assert both.refused() == {("bind", "token"): 1.0}


async def test_a_token_adds_to_a_certificate_that_is_not_enough(both: Door) -> None:
    scheduler = both.ours.issue("kube-scheduler")
    assert (await both.ask("/metrics", scheduler))[0] == 403
    assert (await both.ask("/metrics", scheduler, token="t-prometheus"))[0] == 200


async def test_who_is_let_in_by_certificate_is_never_asked_about(both: Door) -> None:
    both.server.open.clear()
    assert await both.bind(both.ours.issue("kube-scheduler"), token="t-nobody") == 400
    assert both.server.reviews == []


@pytest.mark.parametrize("code", [0, 403, 500])
async def test_without_an_api_server_to_ask_it_is_503_neither_yes_nor_no(
    both: Door, code: int
) -> None:
    both.server.faults.append(Fault("POST", "tokenreviews", code, left=1))
    status, body, headers = await both.ask("/metrics", token="t-prometheus")
    assert (status, headers["Retry-After"]) == (503, "1")
    assert "the API server cannot be asked" in body["error"]
    assert (await both.ask("/metrics", token="t-prometheus"))[0] == 200
    both.server.faults.append(Fault("POST", "subjectaccessreviews", code, left=1))
    assert (await both.ask("/v1/gangs", token="t-prometheus"))[0] == 503
    assert (await both.ask("/v1/gangs", token="t-prometheus"))[0] == 403
    assert both.refused()["metrics", "unavailable"] == 1
    assert both.reviews()["token", "failed"] == both.reviews()["access", "failed"] == 1


async def test_an_api_server_that_does_not_answer_is_not_waited_for(
    both: Door, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(accesscheck, "PATIENCE_S", 0.05)
    both.server.open.clear()
    assert (await both.ask("/metrics", token="t-prometheus"))[0] == 503
    both.server.open.set()
    await until(lambda: both.reviews() == {("token", "yes"): 1})  # the answer still counts
    assert (await both.ask("/metrics", token="t-prometheus"))[0] == 200


async def test_many_requests_with_one_token_are_one_question(both: Door) -> None:
    both.server.open.clear()
    asking = [asyncio.create_task(both.ask("/v1/gangs", token="t-admin")) for _ in range(20)]
    await until(lambda: len(both.server.reviews) == 1)
    both.server.open.set()
    assert {status for status, *_ in await asyncio.gather(*asking)} == {200}
    assert len(both.server.reviews) == 1


async def test_a_token_made_for_somebody_else_is_refused(tmp_path: Path) -> None:
    tokens = Tokens(audiences=("muster.dev/extender",))
    async with door(tmp_path, CallersSettings(tokens)) as it:
        assert (await it.ask("/metrics", token="t-made-for-us"))[0] == 200
        status, body, _ = await it.ask("/metrics", token="t-prometheus")
        assert status == 401
        assert "for another audience" in body["error"]


async def test_an_api_server_that_knows_no_audiences_is_not_believed(tmp_path: Path) -> None:
    tokens = Tokens(audiences=("muster.dev/extender",))
    async with door(tmp_path, CallersSettings(tokens)) as it:
        it.server._token = lambda _spec: {  # type: ignore[method-assign]
            "authenticated": True,
            "user": {"username": "prometheus"},
        }
        assert (await it.ask("/metrics", token="t-prometheus"))[0] == 401


async def test_without_lists_every_certificate_does_everything_and_no_token_schedules(
    tmp_path: Path,
) -> None:
    async with door(tmp_path, CallersSettings(TOKENS)) as it:
        shown = it.ours.issue("anybody")
        assert await it.bind(shown) == 400
        assert (await it.ask("/v1/gangs", shown))[0] == 200
        assert (await it.ask("/metrics", token="t-prometheus"))[0] == 200
        for token in ("t-scheduler", "t-admin"):
            status, body, _ = await it.ask("/v1/extender/bind", token=token, method="POST")
            assert status == 403
            assert "callers.schedule" in body["Error"]


async def test_without_rbac_only_those_named_read(tmp_path: Path) -> None:
    read = Readers(groups=("admins",), rbac=False)
    async with door(tmp_path, CallersSettings(TOKENS, read=read)) as it:
        assert (await it.ask("/metrics", token="t-admin"))[0] == 200
        assert (await it.ask("/metrics", token="t-prometheus"))[0] == 403
        assert [review["kind"] for review in it.server.reviews] == ["TokenReview"] * 2


async def test_without_tokens_nobody_gets_past_the_handshake_without_a_certificate(
    tmp_path: Path,
) -> None:
    async with door(tmp_path, CallersSettings(schedule=SCHEDULE)) as it:
        shown = it.ours.issue("kube-scheduler")
        assert await it.bind(shown) == 400
        assert await it.bind(it.ours.issue("other")) == 403
        with pytest.raises(aiohttp.ClientError):
            await it.ask("/readyz")
        await until(lambda: it.refused().get(("handshake", "nobody"), 0) > 0)
        status, body, headers = await it.ask(
            "/v1/extender/bind", it.ours.issue("other"), token="t-scheduler", method="POST"
        )
        assert (status, it.server.reviews) == (401, [])
        assert "tokens are not accepted here" in body["Error"]
        assert "WWW-Authenticate" not in headers


async def test_with_tokens_alone_no_certificate_is_asked_for(tmp_path: Path) -> None:
    async with door(
        tmp_path, CallersSettings(TOKENS, NamedCallers(users=("scheduler",))), asks=False
    ) as it:
        assert await it.bind(token="t-scheduler") == 400
        assert await it.bind(it.ours.issue("kube-scheduler")) == 401


async def test_where_nobody_is_identified_the_routes_are_as_they_were(tmp_path: Path) -> None:
    async with door(tmp_path, CallersSettings(), asks=False) as it:
        assert await it.bind() == 400
        assert (await it.ask("/v1/gangs"))[0] == 200
        open_ = it.extender.parts.gate
        routes = it.extender.parts.handlers.routes()
        assert not open_.identifies
        guarded = open_.guarded(Area.SCHEDULE, routes)
        assert [route.handler for route in guarded] == [route.handler for route in routes]


async def test_refusals_are_all_counted_and_a_few_a_minute_are_logged(
    both: Door, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, logger="extender.access.accesscheck")
    many = 3 * LOGGED_PER_MINUTE

    def logged() -> list[logging.LogRecord]:
        return [record for record in caplog.records if record.name == "extender.access.accesscheck"]

    both.extender.parts.gate.clock = lambda: 1000.0
    async with both.session() as session:
        for _ in range(many):
            await both.over(session, "/v1/extender/bind", "POST")
    assert both.refused() == {("bind", "nobody"): many}
    assert len(logged()) == LOGGED_PER_MINUTE
    record = vars(logged()[0])
    assert (record["route"], record["reason"], record["peer"]) == ("bind", "nobody", "127.0.0.1")
    both.extender.parts.gate.clock = lambda: 1060.0
    await both.bind()
    assert len(logged()) == LOGGED_PER_MINUTE + 1
    assert vars(logged()[-1])["not_logged_before"] == many - LOGGED_PER_MINUTE
