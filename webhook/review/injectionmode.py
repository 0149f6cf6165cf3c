"""Injection as the server runs it: on, or in shadow, and what is counted of it. Pure.

In shadow everything is decided, counted and logged as if it were done, and the pod stays as it
is: without additions, warnings and refusals. A cluster sees what a profile would do to its pods
before it does it.
"""

from collections import Counter
from enum import StrEnum
from typing import Final

from muster.injection.run import Injection


class Mode(StrEnum):
    """See the module's docstring."""

    ON = "on"
    SHADOW = "shadow"


class Early(StrEnum):
    """What becomes of a pod that comes before the cluster has been read for the first time.

    Injecting then would be a guess. A replica is not ready at ``/readyz`` until then, so this is
    for those that are asked all the same: the only one, or one reached by its address.
    """

    #: gated, nothing injected, with a warning for its author
    PASS = "pass"  # noqa: S105 - to let pass
    #: 503: its controller tries again
    REFUSE = "refuse"


NOT_READ_YET: Final = "Muster has not read the cluster's profiles and nodes yet"
NOT_INJECTED: Final = (
    f"{NOT_READ_YET}: nothing was injected, the pod may run without its fabric; make it again in a "
    "minute"
)
TOO_EARLY: Final = (
    f"{NOT_READ_YET} and would have to guess what this pod needs: try again in a minute, or set "
    'muster.dev/inject: "false" on it'
)


def fields_set(decided: Injection) -> Counter[tuple[str, str]]:
    """Return how many fields were set, by source and kind of field."""
    found: Counter[tuple[str, str]] = Counter()
    for source, names in decided.record.set.items():
        sort = _source(source)
        for kind, count in Counter(map(_kind, names)).items():
            found[sort, kind] += count
    return found


def fields_kept(decided: Injection) -> Counter[tuple[str, str]]:
    """Return how many of the user's own fields a source wanted otherwise, by source and kind."""
    return Counter((_source(source), _kind(name)) for name, source in decided.record.kept.items())


def _source(source: str) -> str:
    """Return a source without its digest and without what users name: a closed set.

    Fabrics keep their names, of which a cluster has a few; data sets, tiers, namespaces and the
    like are counted by their sort.
    """
    sort, _, rest = source.partition("/")
    return f"{sort}/{rest.partition('@')[0]}" if sort == "fabric" else sort.partition("@")[0]


def _kind(name: str) -> str:
    """Return the kind of a field: ``containers[main].env[NCCL_NET]`` is an ``env``."""
    return (name.partition("].")[2] or name).partition("[")[0]
