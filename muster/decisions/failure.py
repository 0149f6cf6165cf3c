"""A gang that the planner fails on waits by itself: one gang's oddity must not stop all others.

The decision is pure and its caller plans every gang of the cluster. Were an error to end the
process, the next leader would meet the same gang first and end as well. So the error becomes
an answer like any other: written down, told to the gang's owner, and the same when it is
replayed from a dump, which is what a report of it should carry.
"""

import traceback
from pathlib import PurePath
from typing import Final

from muster.cluster.ids import GangKey
from muster.placement.decision import Explanation, Wait, WaitReason

REMEDY: Final = (
    "please report this with a dump (docs/replay.md); other gangs are planned, and this one is "
    "tried again when it changes and each minute"
)


def failed(gang: GangKey, generation: int, nodes: int, error: Exception) -> Wait:
    """Return the wait of a gang on which planning raised ``error``; ``nodes``: how many there are.

    The place is the innermost frame: file, line and function, without the machine's paths.
    """
    innermost = traceback.extract_tb(error.__traceback__)[-1]
    path = PurePath(innermost.filename)
    where = f"{path.parent.name}/{path.name}:{innermost.lineno} in {innermost.name}"
    text = f"{type(error).__name__}: {error} ({where}); {REMEDY}"
    return Wait(gang, generation, WaitReason.PLANNER_FAILED, Explanation(nodes, 0, (), remedy=text))
