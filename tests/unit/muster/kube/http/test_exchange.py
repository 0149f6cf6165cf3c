"""Exchanges with a server that answers byte for byte as it is told.

The happy paths run against the real API server in tests/integration; here is what a server,
or a proxy before it, may do on a bad day.
"""

import asyncio
import itertools
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.extenders.authorities import Authority

from muster.kube.http import longbody
from muster.kube.http.exchange import (
    BrokenOffError,
    Exchange,
    HttpAnswer,
    NoConnectionError,
    ServerAddress,
)
from muster.kube.http.longbody import Rooms

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"


@dataclass
class Peer:
    """``answers``: what is written per request, in pieces; an empty piece closes."""

    answers: list[list[bytes]]
    requests: list[bytes] = field(default_factory=list)
    connections: int = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                sized = head.lower().partition(b"content-length: ")[2]
                length = int(sized.split(b"\r\n")[0] or 0)
                self.requests.append(head + await reader.readexactly(length))
                for piece in self.answers.pop(0) if self.answers else [OK]:
                    if not piece:
                        return
                    writer.write(piece)
                    await writer.drain()
                    await asyncio.sleep(0)
        except (asyncio.IncompleteReadError, ConnectionError):
            return
        finally:
            writer.close()


@asynccontextmanager
async def talking(
    *answers: list[bytes],
    shown: ssl.SSLContext | None = None,
    trusted: ssl.SSLContext | None = None,
) -> AsyncIterator[tuple[Exchange, Peer]]:
    """``shown``, ``trusted``: with TLS, as the server has it and as the client does."""
    peer = Peer(list(answers))
    server = await asyncio.start_server(peer.serve, "127.0.0.1", 0, ssl=shown)
    port, scheme = server.sockets[0].getsockname()[1], "http" if shown is None else "https"
    url = f"{scheme}://127.0.0.1:{port}/prefix"
    async with server, Exchange(ServerAddress(url, trusted)) as exchange:
        yield exchange, peer


async def patch(exchange: Exchange, within_s: float = 5.0) -> HttpAnswer:
    return await exchange.ask("PATCH", "/p?a=b", {"Accept": "x"}, b"[1]", within_s=within_s)


async def test_a_request_carries_its_path_headers_and_body() -> None:
    async with talking() as (exchange, peer):
        assert await patch(exchange) == HttpAnswer(200, b"{}")
    (request,) = peer.requests
    assert request.startswith(b"PATCH /prefix/p?a=b HTTP/1.1\r\nHost: 127.0.0.1:")
    assert request.endswith(b"Accept: x\r\nContent-Length: 3\r\n\r\n[1]")


async def test_one_connection_serves_one_request_after_the_other() -> None:
    async with talking() as (exchange, peer):
        for _ in range(5):
            await patch(exchange)
        assert peer.connections == 1
        await asyncio.gather(*[patch(exchange) for _ in range(3)])
        assert peer.connections == 3


@given(st.lists(st.integers(min_value=1, max_value=120), max_size=6))
def test_an_answer_may_come_in_any_pieces(cuts: list[int]) -> None:
    whole = (
        b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n"
        b"HTTP/1.1 429 Too Many Requests\r\nRetry-After: 7\r\nTransfer-Encoding: chunked\r\n\r\n"
        b"3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n"
    )
    edges = sorted({0, *(c for c in cuts if c < len(whole)), len(whole)})
    pieces = [whole[a:b] for a, b in itertools.pairwise(edges)]

    async def ask() -> tuple[HttpAnswer, HttpAnswer]:
        async with talking(pieces, [OK]) as (exchange, peer):
            both = await patch(exchange), await patch(exchange)
            assert peer.connections == 1
            return both

    assert asyncio.run(ask()) == (HttpAnswer(429, b"abcde", "7"), HttpAnswer(200, b"{}"))


async def test_a_connection_that_is_to_be_closed_is_not_used_again() -> None:
    last = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
    async with talking([last]) as (exchange, peer):
        assert (await patch(exchange)).body == b""
        await patch(exchange)
        assert peer.connections == 2


@pytest.mark.parametrize(
    "answer",
    [
        [b""],
        [b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf", b""],
        [b"SMTP ready\r\n\r\n"],
    ],
)
async def test_no_answer_half_an_answer_and_nonsense_break_off(answer: list[bytes]) -> None:
    async with talking(answer) as (exchange, peer):
        with pytest.raises(BrokenOffError):
            await patch(exchange)
        assert (await patch(exchange)).status == 200
        assert peer.connections == 2


async def test_an_answer_that_comes_too_late_is_never_taken_for_the_next_one() -> None:
    async with talking([]) as (exchange, peer):
        with pytest.raises(TimeoutError):
            await patch(exchange, within_s=0.05)
        assert await patch(exchange) == HttpAnswer(200, b"{}")
        assert peer.connections == 2


async def test_an_answer_that_does_not_end_breaks_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("muster.kube.http.exchange._LONGEST_ANSWER_BYTES", 200)
    endless = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + b"1\r\nx\r\n" * 50
    async with talking([endless]) as (exchange, peer):
        with pytest.raises(BrokenOffError, match="does not end"):
            await patch(exchange)
        for _ in range(4):  # what many have together is no longer
            assert (await patch(exchange)).status == 200
        assert peer.connections == 2


@pytest.mark.parametrize(("status", "body"), [("200 OK", b"ab___"), ("404 Not Found", b"ab")])
async def test_what_is_to_stand_behind_a_body_stands_behind_that_of_a_success(
    status: str, body: bytes
) -> None:
    answer = b"HTTP/1.1 %b\r\nTransfer-Encoding: chunked\r\n\r\n" % status.encode()
    pieces = [answer, b"1\r\na\r\n", b"1\r\nb\r\n0\r\n\r\n"]
    async with talking(pieces, [OK]) as (exchange, peer):
        found = await exchange.ask("GET", "/", {}, None, within_s=5.0, rooms=rooms())
        assert found.body == body
        assert (await exchange.ask("GET", "/", {}, None, within_s=5.0)).body == b"{}"
    assert b"Content-Length" not in peer.requests[0]


# --- HTTP/1.0 (``muster.kube.http.closedbody``)
# ------------------------------------------------------------


def rooms() -> Rooms:
    return Rooms(b"___", lambda body: body[-1:] == b"!")


async def listed(exchange: Exchange, within_s: float = 5.0) -> HttpAnswer:
    return await exchange.ask("GET", "/l", {}, None, within_s=within_s, rooms=rooms())


CLOSES = b"HTTP/1.0 200 OK\r\nContent-Type: x\r\n\r\n"
LONG = bytes(range(256)) * 9_000 + b"!"  # more than one is woken for


@given(st.lists(st.integers(min_value=1, max_value=len(CLOSES) + 9), max_size=6))
def test_a_list_ends_with_its_connection(cuts: list[int]) -> None:
    edges = sorted({0, *cuts, len(CLOSES + LONG)})
    pieces = [(CLOSES + LONG)[a:b] for a, b in itertools.pairwise(edges)]

    async def ask() -> None:
        async with talking([*pieces, b""], [CLOSES, b"a!", b""]) as (exchange, peer):
            with mock.patch.object(longbody, "_FIRST_BYTES", 1 << 20):  # less than it takes
                assert await listed(exchange) == HttpAnswer(200, LONG + b"___")
            assert await listed(exchange) == HttpAnswer(200, b"a!___")
            assert await patch(exchange) == HttpAnswer(200, b"{}")
            assert peer.connections == 3
            assert [request.split()[2] for request in peer.requests] == [
                b"HTTP/1.0",
                b"HTTP/1.0",
                b"HTTP/1.1",
            ]

    asyncio.run(ask())


async def test_a_server_that_takes_leave_before_it_closes_is_not_waited_for(tmp_path: Path) -> None:
    """With TLS asyncio's own server says that it ends, and closes when that has been answered."""
    authority = Authority(tmp_path / "authority")
    pair = authority.issue("server")
    shown = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    shown.load_cert_chain(pair.certificate, pair.key)
    answers = [CLOSES, b"a!", b""], [CLOSES, LONG, b""]
    async with talking(*answers, shown=shown, trusted=authority.trust()) as (exchange, _):
        assert (await listed(exchange)).body == b"a!___"
        assert (await listed(exchange)).body == LONG + b"___"


async def test_a_list_that_ends_in_the_middle_breaks_off() -> None:
    async with talking([CLOSES + b"half", b""], [CLOSES + b"whole!", b""]) as (exchange, _):
        with pytest.raises(BrokenOffError, match="in the middle"):
            await listed(exchange)
        assert (await listed(exchange)).body == b"whole!___"


@pytest.mark.parametrize(
    "answer",
    [
        [b""],
        [b"HTTP/1.0 200 O", b""],
        [b"HTTP/1.0 200 OK\r\nContent-Length: 9\r\n\r\nhalf", b""],
        [b"SMTP ready\r\n\r\n"],
        [b"x" * (1 << 16)],
    ],
)
async def test_a_list_without_a_head_or_its_length_breaks_off(answer: list[bytes]) -> None:
    async with talking(answer) as (exchange, _):
        with pytest.raises(BrokenOffError):
            await listed(exchange)
        assert (await patch(exchange)).status == 200


async def test_a_refusal_says_where_it_ends() -> None:
    head = b"HTTP/1.0 429 Too Many Requests\r\nRetry-After: 7\r\nContent-Length: 2\r\n\r\n"
    async with talking([head, b"no"]) as (exchange, _):
        assert await listed(exchange) == HttpAnswer(429, b"no", "7")


@pytest.mark.parametrize("head", [CLOSES, b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\n"])
async def test_an_answer_that_a_proxy_packed_says_so(head: bytes) -> None:
    packed = head.replace(b"\r\n\r\n", b"\r\nContent-Encoding: gzip\r\n\r\n") + b"packed"
    as_it_is = head.replace(b"\r\n\r\n", b"\r\nContent-Encoding: identity\r\n\r\n") + b"whole!"
    async with talking([packed, b""], [packed, b""], [as_it_is, b""]) as (exchange, _):
        for asked in (listed, patch):
            with pytest.raises(BrokenOffError, match=r"packed \(Content-Encoding: gzip\)"):
                await asked(exchange)
        assert (await listed(exchange)).body == b"whole!___"


@pytest.mark.parametrize("refusal", [b"426 Upgrade Required", b"505 HTTP Version Not Supported"])
async def test_who_does_not_talk_http_1_0_is_asked_in_http_1_1_from_then_on(refusal: bytes) -> None:
    no = b"HTTP/1.1 %b\r\nConnection: close\r\nContent-Length: 0\r\n\r\n" % refusal
    async with talking([no]) as (exchange, peer):
        for _ in range(2):
            assert await listed(exchange) == HttpAnswer(200, b"{}___")
        assert [request.split()[2][-1:] for request in peer.requests] == [b"0", b"1", b"1"]


async def test_a_list_that_does_not_end_breaks_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("muster.kube.http.exchange._LONGEST_ANSWER_BYTES", 200)
    async with talking([CLOSES, *[b"x" * (1 << 18)] * 4]) as (exchange, _):
        with pytest.raises(BrokenOffError, match="does not end"):
            await listed(exchange)


async def test_a_list_that_comes_too_late_is_never_taken_for_the_next_answer() -> None:
    async with talking([CLOSES, b"half"]) as (exchange, peer):
        with pytest.raises(TimeoutError):
            await listed(exchange, within_s=0.05)
        assert await patch(exchange) == HttpAnswer(200, b"{}")
        assert peer.connections == 2


async def test_bytes_that_nobody_asked_for_end_the_connection() -> None:
    more = OK.replace(b"{}", b"no")
    async with talking([OK + more], [OK, more]) as (exchange, peer):
        for _ in range(3):
            assert (await patch(exchange)).body == b"{}"
            await asyncio.sleep(0.01)  # what came too much has arrived
        assert peer.connections == 3


async def test_nobody_listening_means_nothing_was_sent() -> None:
    async with talking() as (exchange, _):
        where = exchange.server
    with pytest.raises(NoConnectionError):
        await patch(Exchange(where))


async def test_a_retired_pool_ends_what_is_under_way_and_closes() -> None:
    async with talking() as (exchange, peer):
        await patch(exchange)
        asking = asyncio.create_task(patch(exchange))
        await asyncio.sleep(0)
        exchange.retire()
        assert (await asking).status == 200
        await patch(exchange)
        assert peer.connections == 2
