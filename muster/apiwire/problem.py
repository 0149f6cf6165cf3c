"""The body of an answer other than 2xx."""

import msgspec


class Problem(msgspec.Struct, frozen=True):
    """Why a request failed."""

    #: one sentence for the caller: what is wrong, and what is allowed or what to do
    error: str
