"""HTTP answers of the read API: JSON of a type of ``muster.apiwire``, or an error."""

from typing import Any, Final

import msgspec
from aiohttp import web

from muster.apiwire.decision import Decision
from muster.apiwire.problem import Problem
from muster.placement import decision as placement
from muster.placement.reasons.explanation import to_dict

MAX_ROWS: Final = 10_000
_JSON: Final = "application/json"
_UNAVAILABLE: Final = 503


def answer(body: Any) -> web.Response:
    """Return a value of ``muster.apiwire`` with status 200."""
    return web.Response(body=msgspec.json.encode(body), content_type=_JSON)


def problem(status: int, text: str) -> web.Response:
    """Return an error; with 503 the caller is asked to try again after a second."""
    headers = {"Retry-After": "1"} if status == _UNAVAILABLE else {}
    body = msgspec.json.encode(Problem(text))
    return web.Response(body=body, status=status, content_type=_JSON, headers=headers)


def limit_of(request: web.Request, otherwise: int) -> int:
    """Return ``?limit=``; raises ``HTTPBadRequest`` unless it is from 1 to ``MAX_ROWS``."""
    text = request.query.get("limit", str(otherwise))
    if not text.isdecimal() or not 0 < int(text) <= MAX_ROWS:
        raise web.HTTPBadRequest(text=f"limit: {text!r} is not a number from 1 to {MAX_ROWS}")
    return int(text)


def as_wire(decision: placement.Decision) -> Decision:
    """Return a decision in the form of the answers."""
    return msgspec.convert(to_dict(decision), Decision)
