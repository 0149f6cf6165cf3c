"""Lists come in the chunks that the cold start's server cuts them into, as real API servers do.

::

    API server ──list, byte by byte──► chunks ──► sizes ═══ sizes ◄── framed ◄── the same body

Chunks are a good part of what reading a list costs (docs/design/first-list.md).
"""

import asyncio
import itertools
from urllib.parse import urlsplit

import pytest

from loadtest.benches.coldstart.chunks import framed, unframed
from loadtest.testbed.client.api import Api
from loadtest.testbed.standins.simulated import Plane, SimulatedPlane
from muster.kube.firstlist.items import is_whole, read_list
from muster.kube.firstlist.protobuf import ACCEPT
from muster.kube.resources import PODS

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_a_list_comes_in_the_chunks_of_what_is_written_one_by_one(
    plane: Plane, api: Api, pods: str
) -> None:
    if isinstance(plane, SimulatedPlane):
        pytest.skip("the simulated server writes a list at once")
    await create(api, pods)
    chunks = await chunks_of(api, pods)
    body = b"".join(chunks)
    _, items = read_list(PODS, body)
    edges = [0]
    for begin, end in zip(items.begin.tolist(), items.end.tolist(), strict=True):
        tag = begin - (2 if end - begin < 1 << 7 else 3)
        edges += [tag, begin, end]
    edges.append(len(body))
    written = [body[begin:end] for begin, end in itertools.pairwise(edges)]
    assert len(chunks) > 7
    assert list(map(unframed, framed(written))) == chunks


async def test_a_list_asked_for_with_http_1_0_is_the_same_to_the_end_of_its_connection(
    plane: Plane, api: Api, pods: str
) -> None:
    if isinstance(plane, SimulatedPlane):
        pytest.skip("the simulated server tells the length of each list")
    await create(api, pods)
    while True:
        chunks = await chunks_of(api, pods)
        head, body = await whole(api, pods)
        if chunks == await chunks_of(api, pods):
            break  # nobody wrote meanwhile: a list tells its version, and kube-scheduler of pods
    assert b"transfer-encoding" not in head
    assert b"content-length" not in head
    assert body == b"".join(chunks)
    assert is_whole(body)
    assert not is_whole(body[:-5])  # the last four are two empty fields


async def create(api: Api, pods: str) -> None:
    """Make pods of 0.3 to 5 KB."""
    for number in range(7):
        meta = {"name": f"p{number}", "annotations": {"x": "y" * (700 * number)}}
        spec = {"containers": [{"name": "main", "image": "example.com/image:1"}]}
        await api.create(pods, {"metadata": meta, "spec": spec})


async def chunks_of(api: Api, path: str) -> list[bytes]:
    """Ask by hand, since clients put chunks together."""
    reader, writer = await asked(api, path, "1.1")
    answer = await reader.readuntil(b"\r\n\r\n")
    assert b"transfer-encoding: chunked" in answer.lower()
    found: list[bytes] = []
    while size := int(await reader.readuntil(b"\r\n"), 16):
        found.append(await reader.readexactly(size))
        await reader.readexactly(2)
    writer.close()
    return found


async def whole(api: Api, path: str) -> tuple[bytes, bytes]:
    """Ask with HTTP/1.0; return the head in small letters, and what follows until the end."""
    reader, writer = await asked(api, path, "1.0")
    head = (await reader.readuntil(b"\r\n\r\n")).lower()
    body = await reader.read()
    writer.close()
    return head, body


async def asked(
    api: Api, path: str, version: str
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    url = urlsplit(api.url)
    reader, writer = await asyncio.open_connection(url.hostname, url.port, ssl=api._ssl)
    head = (
        f"GET {path} HTTP/{version}\r\nHost: {url.netloc}\r\nAccept: {ACCEPT}\r\n"
        f"Authorization: {api._headers['Authorization']}\r\n\r\n"
    )
    writer.write(head.encode())
    return reader, writer
