"""The nodes that a question leaves out."""

from muster.cluster.snapshot import Snapshot
from muster.placement.nodelabels import Mask
from muster.placement.question import Question
from muster.placement.rules.refusednodes import Closed, named, other_flavors


def closed_nodes(snapshot: Snapshot, question: Question, refused: Mask | None) -> Closed:
    """Return the nodes that a question leaves out, with these refused ones."""
    return Closed(
        refused,
        named(snapshot, question.kept),
        named(snapshot, question.promised),
        other_flavors(snapshot, question.flavors),
    )
