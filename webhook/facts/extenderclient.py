"""The webhook's one question to the extender, over a connection of its own each time.

It is asked once for a gang. A connection that is made for it leads to whichever replica leads now
(the Service selects the leader), and reads certificates and tokens as they are now.
"""

import ssl
from http import HTTPStatus

import aiohttp
import msgspec

from muster.apiwire import reservation
from muster.apiwire.reservation import Reserved
from webhook.config import ReservationsConfig

MOST_BYTES = 32 * 1024 * 1024  # of an answer: some hundred for each member of the largest gang


async def ask(config: ReservationsConfig, pod: bytes, user: str) -> Reserved:
    """Return what the extender reserves for the gang of ``pod``, which ``user`` creates.

    Raises ``OSError``, ``TimeoutError`` and ``ValueError`` with what the extender said.
    """
    timeout = aiohttp.ClientTimeout(total=config.wait_seconds)
    url = config.url.rstrip("/") + reservation.PATH
    try:
        async with (
            aiohttp.ClientSession(timeout=timeout, headers=_shown(config)) as session,
            session.post(
                url,
                params={reservation.USER: user},
                data=pod,
                ssl=_tls(config),
                allow_redirects=False,
            ) as reply,
        ):
            if (reply.content_length or 0) > MOST_BYTES:
                raise ValueError(f"{url}: the answer has {reply.content_length} bytes")
            return _read(url, reply.status, await reply.read())
    except aiohttp.ClientError as error:
        raise OSError(f"{url}: {error}") from error


def _read(url: str, status: int, body: bytes) -> Reserved:
    try:
        reserved = reservation.decode(body)
    except msgspec.MsgspecError as error:
        raise ValueError(f"{url}: {status}, and the answer cannot be read: {error}") from error
    if status != HTTPStatus.OK:
        raise ValueError(f"{url}: {status} {reserved.why}")
    return reserved


def _tls(config: ReservationsConfig) -> ssl.SSLContext | bool:
    if not config.url.startswith("https:"):
        return True
    context = ssl.create_default_context(cafile=config.ca_file)
    if config.cert_file is not None:
        context.load_cert_chain(config.cert_file, config.key_file)
    return context


def _shown(config: ReservationsConfig) -> dict[str, str]:
    if config.token_file is None:
        return {}
    return {"Authorization": f"Bearer {config.token_file.read_text().strip()}"}
