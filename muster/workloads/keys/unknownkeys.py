"""Keys with Muster's prefix that Muster does not know: most are slips of the pen."""

import difflib
import re
from collections.abc import Mapping
from typing import Final

from muster.kube import names
from muster.workloads.keys.userkeys import USER_KEYS, shorten

_MUSTERS_OWN: Final = frozenset(
    {names.PLAN, names.ORIGINAL_SCHEDULER, names.MANAGED, names.INJECTED, names.NCCL_CONF}
)
_WHILE_RUNNING: Final = frozenset({names.CHECKPOINTED_AT})  # a copy of a pod may have it
_OF_INJECTION: Final = frozenset(
    {names.FABRIC_OPTIONS, names.GPU_TIER, names.WORKLOAD, names.CAPACITY}
)
_OF_SUSPENSION: Final = frozenset({names.MIN_PARALLELISM})  # on templates of Ray's workers
_OURS: Final = re.compile(rf"^{re.escape(names.PREFIX)}.*", re.MULTILINE)  # in lines of keys
_KNOWN: Final = USER_KEYS | _OF_INJECTION | _MUSTERS_OWN | _WHILE_RUNNING | _OF_SUSPENSION
_SUGGESTED: Final = sorted(USER_KEYS | _OF_INJECTION)
_LONGEST_SLIP: Final = 80  # characters of a key for which the nearest one is looked up
_TOLD_AT_MOST: Final = 16  # unknown keys; the API server keeps 4096 characters of warnings


def unknown(labels: Mapping[str, str], annotations: Mapping[str, str]) -> list[str]:
    """Return one sentence for each key with Muster's prefix that Muster does not know.

    They are warned about, not refused: an older webhook must not block newer keys.
    """
    keys = set(_OURS.findall("\n".join((*labels, *annotations))))
    strange = sorted(key for key in keys - _KNOWN if not key.startswith(names.DATASET))
    return [_unknown(key) for key in strange[:_TOLD_AT_MOST]]


def _unknown(key: str) -> str:
    near = difflib.get_close_matches(key, _SUGGESTED, n=1) if len(key) <= _LONGEST_SLIP else []
    hint = f"did you mean {near[0]}?" if near else "it has no effect"
    return f'"{shorten(key)}" is not a key that Muster knows: {hint}'
