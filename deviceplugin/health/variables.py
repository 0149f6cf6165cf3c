"""The environment variables of NVIDIA's plugin that name Xids to ignore.

Source: NVIDIA/k8s-device-plugin internal/rm/health.go, ``getDisabledHealthCheckXids``. Each is a
list of codes with commas, or ``all`` (``xids`` means the same):

======================================  ========================================================
``DP_DISABLE_HEALTHCHECKS=48,63``       these codes are ignored
``DP_DISABLE_HEALTHCHECKS=all``         all codes are, but for those that are enabled
``DP_ENABLE_HEALTHCHECKS=13``           these codes make a GPU unhealthy, also where the other
                                        variable or the catalogue ignores them
``DP_ENABLE_HEALTHCHECKS=all``          every code does
======================================  ========================================================

A code with an effect of its own in ``health.xids`` of the configuration keeps it.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

import msgspec

from deviceplugin.health.config import Xids
from deviceplugin.health.xids import Effect

DISABLE: Final = "DP_DISABLE_HEALTHCHECKS"
ENABLE: Final = "DP_ENABLE_HEALTHCHECKS"
_ALL: Final = frozenset({"all", "xids"})
_DIGITS: Final = 9  # of a code; the driver's have three


@dataclass(frozen=True, slots=True)
class XidVariable:
    """One of the variables."""

    codes: frozenset[int] = frozenset()
    every: bool = False
    #: words that are no code, in their order
    unread: tuple[str, ...] = ()


def read(text: str) -> XidVariable:
    """Return what a variable says; a list with ``all`` in it means that alone."""
    words = tuple(word for part in text.split(",") if (word := part.strip().lower()))
    if not _ALL.isdisjoint(words):
        return XidVariable(every=True)
    codes = [word for word in words if _is_code(word)]
    return XidVariable(
        frozenset(map(int, codes)), unread=tuple(word for word in words if not _is_code(word))
    )


def applied(xids: Xids, variables: Mapping[str, str]) -> Xids:
    """Return the settings with what the variables add to them."""
    off, on = read(variables.get(DISABLE, "")), read(variables.get(ENABLE, ""))
    own = xids.overrides()
    effects = {
        **dict.fromkeys(off.codes if not on.every else (), Effect.NONE),
        **dict.fromkeys(on.codes, Effect.UNHEALTHY),
        **own,
    }
    others = Effect.UNHEALTHY if on.every else Effect.NONE if off.every else None
    return msgspec.structs.replace(xids, ignore=(), effects=effects, others=xids.others or others)


def problems(variables: Mapping[str, str]) -> Iterator[str]:
    """Yield a line for each variable with words that are no code; upstream skips them, too."""
    for name in (DISABLE, ENABLE):
        unread = read(variables.get(name, "")).unread
        if unread:
            words = ", ".join(unread)
            yield f"{name}: {words}: no Xid, and skipped; write numbers with commas, or all"


def _is_code(word: str) -> bool:
    return word.isascii() and word.isdecimal() and len(word) <= _DIGITS
