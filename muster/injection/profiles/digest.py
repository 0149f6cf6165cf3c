"""A short digest of a profile, by which pods made before it changed differ from later ones."""

import hashlib

import msgspec

_DIGITS = 8  # 32 bits: among the profiles of one cluster no two will meet


def digest(profile: msgspec.Struct) -> str:
    """Return the digest of everything that a profile says, in hexadecimal digits."""
    return hashlib.sha256(msgspec.json.encode(profile)).hexdigest()[:_DIGITS]
