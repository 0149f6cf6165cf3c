"""The body of an answer that is no 2xx."""

import msgspec


class Problem(msgspec.Struct, frozen=True):
    """Why there is no answer."""

    #: one sentence for the caller: what is wrong, and what is allowed or what to do
    error: str
