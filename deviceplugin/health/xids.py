"""What an Xid error of the NVIDIA driver means for the device, as data: ``xids.yaml``."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from importlib import resources
from types import MappingProxyType
from typing import Final

import msgspec


class XidAction(StrEnum):
    """What the catalogue asks for at once."""

    IGNORE = "ignore"
    RESTART_APP = "restart_app"
    LOOK_INTO = "look_into"
    RESET_GPU = "reset_gpu"
    RESTART_NODE = "restart_node"


class Effect(StrEnum):
    """What a code does to the device; operators may override it for a code."""

    NONE = "ignore"
    SUSPECT = "suspect"
    UNHEALTHY = "unhealthy"


_EFFECTS: Final[Mapping[XidAction, Effect]] = {
    XidAction.IGNORE: Effect.NONE,
    XidAction.RESTART_APP: Effect.NONE,  # a program failed or caused it: the device is well
    XidAction.LOOK_INTO: Effect.SUSPECT,
    XidAction.RESET_GPU: Effect.UNHEALTHY,
    XidAction.RESTART_NODE: Effect.UNHEALTHY,
}


class _Group(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    codes: tuple[int, ...]
    means: dict[int, str] = {}


@dataclass(frozen=True, slots=True)
class XidVerdict:
    """What one code means for the device."""

    effect: Effect
    #: the catalogue's text for the code; may be empty
    means: str = ""
    #: whether an error that names a MIG instance concerns that instance alone
    confined: bool = False


@dataclass(frozen=True, slots=True)
class XidTable:
    """The catalogue with an operator's ``overrides``."""

    #: code → what the catalogue asks for
    actions: Mapping[int, XidAction]
    #: code → the catalogue's text
    means: Mapping[int, str]
    #: code → effect in place of the catalogue's
    overrides: Mapping[int, Effect] = field(default_factory=lambda: MappingProxyType({}))
    #: effect of every code that is not in ``overrides``, in place of the catalogue's
    others: Effect | None = None

    def verdict(self, code: int) -> XidVerdict:
        """Return what ``code`` means; an unknown code makes the GPU suspect.

        A code that only asks to restart the program concerns the MIG instance it ran on; a reset
        concerns the whole GPU, whatever instance the error names.
        """
        action = self.actions.get(code, XidAction.LOOK_INTO)
        effect = self.overrides.get(code, self.others or _EFFECTS[action])
        return XidVerdict(effect, self.means.get(code, ""), action is XidAction.RESTART_APP)


def load(overrides: Mapping[int, Effect], others: Effect | None = None) -> XidTable:
    """Return the table that is shipped, with ``overrides``; ``others``: as in ``XidTable``."""
    data = resources.files("deviceplugin.health").joinpath("xids.yaml").read_bytes()
    groups = msgspec.yaml.decode(data, type=dict[XidAction, _Group])
    return XidTable(
        {code: action for action, group in groups.items() for code in group.codes},
        {code: text for group in groups.values() for code, text in group.means.items()},
        MappingProxyType(dict(overrides)),
        others,
    )
