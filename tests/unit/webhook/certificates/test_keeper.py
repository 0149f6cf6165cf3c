"""Certificates kept right by replicas that race each other, and changed under connections."""

import asyncio
import base64
import json
import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from webhook.certificates.authority import Names, issue, load_bundle, new_authority, pem
from webhook.certificates.keeper import Keeper
from webhook.certificates.publisher import ConfigurationPublisher, NoPublisher
from webhook.certificates.rotation import Lifetimes
from webhook.certificates.servingcertificate import FileCertificates
from webhook.certificates.stores import DirectoryStore, SecretStore, Store
from webhook.certificates.tls import NO_CHECK_TIME, HotContext
from webhook.errors import CertificateError

NAMES = Names(("muster-webhook.muster-system.svc",), ("127.0.0.1",))
HOUR = timedelta(hours=1)
LIVES = Lifetimes(authority=90 * HOUR, leaf=9 * HOUR, settle=timedelta(minutes=1))
HOOK = "mutatingwebhookconfigurations/muster-webhook"


class Clock:
    """Moves when told."""

    def __init__(self) -> None:
        self.now = datetime(2026, 1, 1, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now

    def goes(self, delta: timedelta) -> None:
        self.now += delta


class MemoryApi:
    """An API server of a few objects: resourceVersions, conflicts, patches by webhook name."""

    def __init__(self) -> None:
        self.objects: dict[str, dict[str, object]] = {}
        self.version = 0

    async def read(self, path: str) -> bytes | None:
        await asyncio.sleep(0)  # let the others run: races are the point
        found = self.objects.get(path)
        return None if found is None else json.dumps(found).encode()

    async def create(self, path: str, body: bytes) -> bool:
        await asyncio.sleep(0)
        made = json.loads(body)
        named = f"{path}/{made['metadata']['name']}"
        if named in self.objects:
            return False
        self._store(named, made)
        return True

    async def patch(self, path: str, body: bytes) -> bool:
        await asyncio.sleep(0)
        change, found = json.loads(body), self.objects.get(path)
        if found is None or not self._is_current(found, change):
            return False
        found.setdefault("data", {}).update(change.get("data", {}))
        for changed in change.get("webhooks", []):
            for hook in found["webhooks"]:
                if hook["name"] == changed["name"]:
                    hook["clientConfig"].update(changed["clientConfig"])
        self._store(path, found)
        return True

    async def replace(self, path: str, body: bytes) -> bool:
        await asyncio.sleep(0)
        if path not in self.objects:
            return False
        self._store(path, json.loads(body))
        return True

    def bundle(self) -> bytes:
        hook = self.objects[f"/apis/admissionregistration.k8s.io/v1/{HOOK}"]["webhooks"][0]
        return base64.b64decode(hook["clientConfig"].get("caBundle", ""))

    def _store(self, path: str, made: dict[str, object]) -> None:
        self.version += 1
        made["metadata"]["resourceVersion"] = str(self.version)
        self.objects[path] = made

    def _is_current(self, found: dict[str, object], change: dict[str, object]) -> bool:
        asked = change.get("metadata", {}).get("resourceVersion")
        return asked in {None, found["metadata"]["resourceVersion"]}


@pytest.fixture
def api() -> MemoryApi:
    api = MemoryApi()
    hooks = [{"name": "a", "clientConfig": {"url": "https://x"}}]
    api._store(f"/apis/admissionregistration.k8s.io/v1/{HOOK}", {"metadata": {}, "webhooks": hooks})
    return api


def replica(api: MemoryApi, clock: Clock) -> Keeper:
    store = SecretStore(api, "muster-system", "authority")
    return Keeper(store, ConfigurationPublisher(api, [HOOK]), NAMES, LIVES, clock)


async def handshake(context: HotContext, bundle: bytes) -> bytes:
    """Connect anew as a client that trusts `bundle`; return the certificate served."""

    async def answer(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0, ssl=context.front)
    async with server:
        port = server.sockets[0].getsockname()[1]
        trust = ssl.create_default_context(cadata=bundle.decode())
        trust.verify_flags |= NO_CHECK_TIME  # the certificates live by the test's clock
        reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=trust)
        served: bytes = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
        await reader.read()
        writer.close()
        await writer.wait_closed()
    return served


async def test_of_ten_replicas_that_start_at_once_one_makes_the_authority(api: MemoryApi) -> None:
    clock = Clock()
    replicas = [replica(api, clock) for _ in range(10)]
    await asyncio.gather(*(keeper.refresh() for keeper in replicas))
    assert len({keeper.bundle for keeper in replicas}) == 1
    assert load_bundle(api.bundle()) == load_bundle(replicas[0].bundle)


async def test_every_replica_is_trusted_through_three_rotations(api: MemoryApi) -> None:
    clock = Clock()
    start = clock.now
    replicas = [replica(api, clock) for _ in range(3)]
    authorities = set()
    while clock.now < start + 260 * HOUR:
        for keeper in replicas:
            await keeper.refresh()
            for other in replicas:
                leaf = other._leaf
                assert leaf is None or leaf.issuer in load_bundle(api.bundle())
        authorities |= set(load_bundle(api.bundle()))
        clock.goes(HOUR)
    assert len(authorities) == 4 + 1  # four have signed; the fifth is staged


async def test_a_new_authority_signs_only_after_it_was_shown_for_the_settle_time(
    api: MemoryApi,
) -> None:
    clock = Clock()
    keeper = replica(api, clock)
    await keeper.refresh()
    first = keeper._leaf
    assert first is not None
    clock.goes(60 * HOUR)
    await keeper.refresh()  # staged, and published by this very call
    await keeper.refresh()  # seen as published: the settle time begins
    clock.goes(timedelta(seconds=59))
    await keeper.refresh()
    assert keeper._leaf is not None
    assert keeper._leaf.issuer == first.issuer
    clock.goes(timedelta(seconds=1))
    await keeper.refresh()
    assert keeper._leaf.issuer != first.issuer


async def test_a_bundle_that_somebody_wiped_is_restored(api: MemoryApi) -> None:
    keeper = replica(api, Clock())
    await keeper.refresh()
    path = f"/apis/admissionregistration.k8s.io/v1/{HOOK}"
    api.objects[path]["webhooks"][0]["clientConfig"]["caBundle"] = "Cg=="
    await keeper.refresh()
    assert api.bundle() == keeper.bundle


async def test_new_connections_get_the_new_certificate_without_a_restart(tmp_path: Path) -> None:
    clock = Clock()
    keeper = Keeper(DirectoryStore(tmp_path), NoPublisher(), NAMES, LIVES, clock)
    await keeper.refresh()
    before = await handshake(keeper.context, keeper.bundle)
    assert await handshake(keeper.context, keeper.bundle) == before
    clock.goes(6 * HOUR)
    await keeper.refresh()
    assert await handshake(keeper.context, keeper.bundle) != before


@pytest.fixture(params=["directory", "secret"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    if request.param == "directory":
        return DirectoryStore(tmp_path / "made" / "when-needed")
    return SecretStore(MemoryApi(), "muster-system", "authority")


async def test_a_store_takes_a_write_only_over_the_version_that_was_read(store: Store) -> None:
    clock = Clock()
    held, version = await store.read()
    assert (held, version) == (None, "")
    await Keeper(store, NoPublisher(), NAMES, LIVES, clock).refresh()
    held, current = await store.read()
    assert held is not None
    assert current != version
    assert await store.write(held, version, clock.now) is False
    assert (await store.read())[1] == current


async def test_the_directory_keeps_the_key_to_itself_and_shows_the_certificate(
    tmp_path: Path,
) -> None:
    keeper = Keeper(DirectoryStore(tmp_path), NoPublisher(), NAMES, LIVES, Clock())
    await keeper.refresh()
    assert (tmp_path / "authority.json").stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "ca.crt").read_bytes() == keeper.bundle
    assert b"PRIVATE" not in keeper.bundle


async def test_a_damaged_store_is_an_error_and_what_is_served_is_served_on(tmp_path: Path) -> None:
    keeper = Keeper(DirectoryStore(tmp_path), NoPublisher(), NAMES, LIVES, Clock())
    await keeper.refresh()
    before = await handshake(keeper.context, keeper.bundle)
    (tmp_path / "authority.json").write_bytes(b"damaged")
    with pytest.raises(CertificateError):
        await keeper.refresh()
    assert keeper.problem() is None
    assert await handshake(keeper.context, keeper.bundle) == before


async def test_readiness_names_what_is_wrong(tmp_path: Path) -> None:
    clock = Clock()
    keeper = Keeper(DirectoryStore(tmp_path), NoPublisher(), NAMES, LIVES, clock)
    assert keeper.problem() == "no serving certificate yet"
    with pytest.raises(CertificateError, match="no certificate yet"):
        _ = keeper.context
    await keeper.refresh()
    clock.goes(10 * HOUR)
    assert (keeper.problem() or "").startswith("the serving certificate expired at ")


async def test_files_of_another_authority_are_read_again_when_they_change(tmp_path: Path) -> None:
    clock = Clock()
    authority = new_authority(clock.now, 90 * HOUR)
    bundle = pem(authority.certificate)
    chain, key = tmp_path / "tls.crt", tmp_path / "tls.key"

    def put() -> None:
        leaf = issue(authority, NAMES, clock.now, 9 * HOUR)
        chain.write_bytes(leaf.chain)
        key.write_bytes(leaf.key)

    put()
    files = FileCertificates(chain, key, clock)
    await files.refresh()
    before = await handshake(files.context, bundle)
    put()
    await files.refresh()
    after = await handshake(files.context, bundle)
    assert after != before
    key.write_bytes(b"half written")
    with pytest.raises(CertificateError):
        await files.refresh()
    assert await handshake(files.context, bundle) == after
