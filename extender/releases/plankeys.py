"""The keys that plans are sealed with: a Secret that the first leader makes, once.

::

    standby ──► reads the Secret; without one every plan is believed
    leader  ──► reads it again before it plans, or makes it: pods that are there then are believed
    neither possible (no right, no namespace) ──► a key in memory, for this process alone

An administrator changes the key by changing the Secret (docs/adr/0052): plans sealed with
``previous`` are accepted, too.
"""

import asyncio
import base64
import binascii
import logging
import secrets
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

import msgspec

from extender.engine import Clock
from muster.kube import wire
from muster.kube.client import KubeClient
from muster.kube.errors import AlreadyExists, APIError, Forbidden, KubeError, NotFound
from muster.kube.resources import Resource
from muster.kube.translation.planseal import KEY_BYTES, PlanKeys

log = logging.getLogger(__name__)

NAME: Final = "muster-extender-plans"
KEY: Final = "key"  # fields of the Secret
PREVIOUS: Final = "previous"
ATTEMPTS: Final = 15  # at an API server that answers neither yes nor no
RETRY_S: Final = 1.0


class PlansSecret(msgspec.Struct, rename="camel"):
    """The Secret, as far as it is read."""

    metadata: wire.ObjectMeta = msgspec.field(default_factory=wire.ObjectMeta)
    #: By field, in base64.
    data: dict[str, str] = msgspec.field(default_factory=dict)


SECRETS: Final = Resource("", "v1", "secrets", PlansSecret)


@dataclass(frozen=True, slots=True)
class KeyHome:
    """Where the key is kept."""

    #: The Secret's namespace; "": a key is kept in memory alone.
    namespace: str = ""
    #: Returns so many random bytes.
    random: Callable[[int], bytes] = secrets.token_bytes


class PlanKeyStore:
    """Fills in ``keys``, which the parts that write and read plans share."""

    def __init__(self, client: KubeClient, home: KeyHome, keys: PlanKeys, clock: Clock) -> None:
        self._client, self._home, self._keys, self._clock = client, home, keys, clock

    async def read(self) -> None:
        """Read the Secret, if there is one. For a replica that does not lead yet."""
        if self._home.namespace:
            await self._tried(self._take_if_made, "read")

    async def begin(self) -> None:
        """Read the Secret or make it. Afterwards there is a key in any case.

        A key that was read before stays, if the Secret cannot be read again.
        """
        if self._home.namespace and await self._tried(self._take_or_make, "read or made"):
            return
        if self._keys.own:
            return
        self._keys.own, self._keys.others = self._home.random(KEY_BYTES), ()
        self._keys.since = self._clock()
        log.warning(
            "plans have a key of this process alone",
            extra={"kept": "in memory", "believed": "plans of pods that exist now"},
        )

    async def _take(self) -> bool:
        found = await self._client.get(SECRETS, NAME, namespace=self._home.namespace)
        keys = [_key(found.data.get(field, "")) for field in (KEY, PREVIOUS)]
        if not keys[0]:
            raise _Unusable(
                f"Secret {self._home.namespace}/{NAME}: data[{KEY}] must be {KEY_BYTES} bytes or "
                "more in base64: delete the Secret to have it made again"
            )
        made = found.metadata.creation_timestamp
        self._keys.own, self._keys.others = keys[0], tuple(key for key in keys[1:] if key)
        self._keys.since = 0.0 if made is None else made.timestamp()
        return True

    async def _take_if_made(self) -> bool:
        """Read the Secret; before the first leader there is none, and nothing is wrong."""
        try:
            return await self._take()
        except NotFound:
            return False

    async def _take_or_make(self) -> bool:
        try:
            return await self._take()
        except NotFound:
            key = base64.b64encode(self._home.random(KEY_BYTES)).decode()
            meta = {"name": NAME, "namespace": self._home.namespace}
            body = {
                "apiVersion": "v1", "kind": "Secret", "type": "Opaque",
                "metadata": meta, "data": {KEY: key},
            }  # fmt: skip
            try:
                await self._client.create(SECRETS, body, namespace=self._home.namespace)
            except AlreadyExists:
                log.info("another replica made the key of plans")
            return await self._take()

    async def _tried(self, step: Callable[[], Awaitable[bool]], what: str) -> bool:
        """Try a step some times; return whether it succeeded.

        Nothing else can be done either while there is no answer, so that counts as no attempt.
        """
        problem, left = "", ATTEMPTS
        while left:
            try:
                return await step()
            except (NotFound, Forbidden, _Unusable) as error:
                problem = str(error)
                break
            except KubeError as error:
                problem = str(error)
                left -= isinstance(error, APIError)
                await asyncio.sleep(RETRY_S)
        log.warning("no key of plans", extra={"cannot be": what, "problem": problem})
        return False


class _Unusable(Exception):
    """The Secret holds no key."""


def _key(text: str) -> bytes:
    """Return a key, empty for a text that is none."""
    try:
        found = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return b""
    return found if len(found) >= KEY_BYTES else b""
