"""What one object says about queues."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from muster.cluster.quota.queuespec import QueueName, QueueSpec
from muster.cluster.specs.podconstraints import Requirement


@dataclass(frozen=True, slots=True)
class QueueAlias:
    """How gangs name a queue."""

    #: The text in a gang's label or field; "" for gangs that name no queue.
    text: str
    #: The queue.
    queue: QueueName
    #: The namespace whose gangs name it so, "" for all.
    namespace: str = ""


@dataclass(frozen=True, slots=True)
class QueueReading:
    """What one object says about queues; everything it does not say is the default."""

    #: The queues that it describes, parents before children.
    specs: tuple[QueueSpec, ...] = ()
    #: How gangs name them. A parent that holds no gangs has no alias.
    aliases: tuple[QueueAlias, ...] = ()
    #: By queue, ANDed requirements over the labels of namespaces whose gangs may use it. A queue
    #: without an entry is for all.
    namespaces: Mapping[QueueName, tuple[Requirement, ...]] = field(default_factory=dict)
    #: What is wrong with it: "FIELD: "VALUE" is not allowed: what is, and what to do".
    problems: tuple[str, ...] = ()
    #: Fields that are written and that Muster does not obey: "FIELD: why, and what it does".
    unobeyed: tuple[str, ...] = ()
