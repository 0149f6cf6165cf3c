"""The key of plans: made once, read by all, and in memory where there is no other way."""

import base64
import json
from typing import Any, Self

import pytest

from extender.releases import plankeys
from extender.releases.plankeys import KEY, NAME, PREVIOUS, KeyHome, PlanKeyStore
from muster.kube.client import KubeClient
from muster.kube.errors import from_response
from muster.kube.http import auth
from muster.kube.http.transport import HttpRequest
from muster.kube.translation.planseal import KEY_BYTES, PlanKeys

PATH = "/api/v1/namespaces/muster-system/secrets"
MADE = "2026-03-01T00:00:00Z"
MADE_S = 1_772_323_200.0
HOME = KeyHome("muster-system", lambda count: b"r" * count)


class Secrets:
    """A connection to an API server that stores one Secret, or refuses."""

    def __init__(self, data: dict[str, bytes] | None = None, refuses: int = 0) -> None:
        self.data, self.refuses = data, refuses
        self.requests: list[str] = []

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        return

    async def send(self, request: HttpRequest) -> bytes:
        self.requests.append(request.method)
        if self.refuses:
            raise from_response(self.refuses, b"{}")
        if request.method == "POST":
            assert request.path == PATH
            assert request.body is not None
            given = json.loads(request.body)["data"]
            self.data = {key: base64.b64decode(text) for key, text in given.items()}
        elif self.data is None:
            raise from_response(404, b"{}")
        encoded = {key: base64.b64encode(text).decode() for key, text in (self.data or {}).items()}
        meta = {"name": NAME, "namespace": "muster-system", "creationTimestamp": MADE}
        return json.dumps({"metadata": meta, "data": encoded}).encode()


def store(server: Any, home: KeyHome = HOME) -> tuple[PlanKeyStore, PlanKeys]:
    keys = PlanKeys()
    client = KubeClient(auth.fixed("http://127.0.0.1:1"), transport=server)
    return PlanKeyStore(client, home, keys, lambda: 5_000.0), keys


async def test_the_first_leader_makes_the_key_and_the_next_one_reads_the_same() -> None:
    server = Secrets()
    first, keys = store(server)
    await first.begin()
    assert (keys.own, keys.since) == (b"r" * KEY_BYTES, MADE_S)
    assert server.requests == ["GET", "POST", "GET"]
    second, same = store(server, KeyHome("muster-system", lambda count: b"x" * count))
    await second.begin()
    assert same.own == keys.own


async def test_a_standby_makes_nothing_and_believes_all_until_there_is_a_key() -> None:
    server = Secrets()
    standby, keys = store(server)
    await standby.read()
    assert server.requests == ["GET"]
    assert keys == PlanKeys()


@pytest.mark.parametrize(
    ("server", "said"),
    [(Secrets(), []), (Secrets(refuses=403), ["no key of plans"])],
    ids=["new installation", "no right"],
)
async def test_a_standby_warns_of_a_secret_it_may_not_read_and_not_of_one_still_to_be_made(
    server: Secrets, said: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    standby, _ = store(server)
    await standby.read()
    assert [record.getMessage() for record in caplog.records] == said


async def test_both_keys_of_a_rotation_are_read() -> None:
    standby, keys = store(Secrets({KEY: b"n" * 32, PREVIOUS: b"o" * 32}))
    await standby.read()
    assert keys.all() == (b"n" * 32, b"o" * 32)


@pytest.mark.parametrize(
    "server",
    [Secrets(refuses=403), Secrets({KEY: b"short"}), Secrets({})],
    ids=["refused", "short", "empty"],
)
async def test_without_a_usable_secret_the_key_is_this_processs_own(server: Secrets) -> None:
    leader, keys = store(server)
    await leader.begin()
    assert (keys.own, keys.since) == (b"r" * KEY_BYTES, 5_000.0)


async def test_a_key_that_was_read_before_stays_if_it_cannot_be_read_again() -> None:
    server = Secrets({KEY: b"k" * 32})
    leader, keys = store(server)
    await leader.read()
    server.refuses = 403
    await leader.begin()
    assert keys.own == b"k" * 32


async def test_without_a_namespace_nobody_is_asked() -> None:
    server = Secrets()
    leader, keys = store(server, KeyHome("", lambda count: b"m" * count))
    await leader.read()
    await leader.begin()
    assert keys.own == b"m" * KEY_BYTES
    assert server.requests == []


async def test_an_api_server_that_fails_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plankeys, "RETRY_S", 0.0)
    server = Secrets({KEY: b"k" * 32}, refuses=500)
    send = server.send

    async def recovers(request: HttpRequest) -> bytes:
        server.refuses = 500 if len(server.requests) < 3 else 0
        return await send(request)

    server.send = recovers  # type: ignore[method-assign]
    leader, keys = store(server)
    await leader.begin()
    assert keys.own == b"k" * 32
