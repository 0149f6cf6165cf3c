"""Sets the extender's clock to that of the API server, once, before anything is listed.

::

    start ──► GET /version ──► within a second, as far as that is known: the clock stays
                 │        ╲──► more than that for certain: the clock is moved
                 └ no answer: again, since nothing can be listed either

Ages, deadlines and windows are computed from timestamps that the API server wrote, some of them for
an older leader on another machine. With a clock of its own that is 25 minutes ahead, a replica
would take every new gang for an old one: it would not roll back one that stands in part, and give
up on one whose members are still being created.

The header that is compared has whole seconds, so what is measured is wrong by up to half a second
and half the way. A small difference, which is normal for machines that follow time servers, changes
nothing: the clock would only become worse.
"""

import asyncio
import logging
from typing import Final

from extender.engine import SteadyClock
from muster.kube.client import KubeClient
from muster.kube.errors import DecodeError, KubeError
from muster.kube.http.serverclock import Skew

log = logging.getLogger(__name__)

RETRY_S: Final = 1.0
MOVES_S: Final = 1.0  # a smaller difference is not worth the error of measuring it


class ServerTime:
    """Moves ``clock``."""

    def __init__(self, client: KubeClient, clock: SteadyClock) -> None:
        self._client, self._clock = client, clock

    async def begin(self) -> None:
        """Ask until there is an answer; without a date in it the clock stays."""
        said = ""
        while True:
            try:
                skew = await self._client.skew(self._clock)
            except DecodeError as error:
                text = "the API server's time is not known, this machine's is used"
                log.warning(text, extra={"problem": str(error)})
                return
            except KubeError as error:
                level = logging.INFO if str(error) == said else logging.WARNING
                said = str(error)
                log.log(level, "the API server's time not read", extra={"error": said})
                await asyncio.sleep(RETRY_S)
            else:
                self._follow(skew)
                return

    def _follow(self, skew: Skew) -> None:
        if skew.certain_s < MOVES_S:
            return
        self._clock.move(skew.ahead_s)
        log.warning(
            "the API server's clock differs from this machine's, times follow the API server",
            extra={"ahead_s": round(skew.ahead_s, 1)},
        )
