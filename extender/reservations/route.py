"""``POST /v1/reservations``: the webhook's request, before the first pod of a gang is created."""

from collections.abc import Callable
from dataclasses import dataclass

import msgspec
from aiohttp import web

from extender.calls.body import Body
from extender.calls.verbs import POD
from extender.errors import TooLarge
from extender.reservations.reservations import Reservations
from muster.apiwire.reservation import PATH, USER, Reserved, encode

_JSON = "application/json"


@dataclass(slots=True)
class ReservationApi:
    """The HTTP route. A replica that does not lead answers 503 and closes the connection."""

    reservations: Reservations
    #: returns whether the cluster is listed and this replica leads
    ready: Callable[[], bool]

    def routes(self) -> list[web.RouteDef]:
        """Return the one route."""
        return [web.post(PATH, self._reserve)]

    async def _reserve(self, request: web.Request) -> web.Response:
        if not self.ready():
            response = _reply(Reserved(why="this replica does not lead, or is starting"), 503)
            response.force_close()
            return response
        try:
            pod = POD.decode(await Body(request).read())
        except TooLarge as error:
            return _reply(Reserved(why=str(error)), 413)
        except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
            return _reply(Reserved(why=f"Pod: {error}"), 400)
        return _reply(await self.reservations.reserve(pod, request.query.get(USER, "")))


def _reply(reserved: Reserved, status: int = 200) -> web.Response:
    return web.Response(body=encode(reserved), content_type=_JSON, status=status)
