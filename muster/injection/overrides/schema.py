"""The base of what policies are read into: an unknown field would be a part that is not done."""

import msgspec


class Strict(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel", kw_only=True):
    """Base of the structs; carries the decoding rules only."""
