"""A decision of the planner about a gang, as it stands inside answers: counts and words.

Which fields there are depends on ``decision``: the others are left out.
"""

import msgspec
from msgspec import UNSET, UnsetType


class RuleAnswer(msgspec.Struct, frozen=True):
    """A rule of placement, and what it leaves."""

    #: name, as "node selector"
    rule: str
    #: nodes that it removes
    removed: int
    #: what exactly does, "" for nothing more to say
    detail: str


class Holder(msgspec.Struct, frozen=True):
    """A gang that has what another lacks."""

    gang: str
    #: units of what is lacked most
    amount: int
    priority: int
    #: pods that stand there
    pods: int
    #: ISO 8601: when the first of these started; None where it is not known
    since: str | None


class Nearest(msgspec.Struct, frozen=True):
    """The domain with room for the most of the gang's members."""

    #: label key of the level; "cluster" where no level is required
    level: str
    domain: str
    #: members there is room for
    fits: int
    #: members that have to fit
    needed: int
    #: resource → amount
    short_of: dict[str, int]
    #: gang → amount
    held_by: dict[str, int]
    #: amount that pods of no gang have
    held_by_others: int
    holders: tuple[Holder, ...]
    #: resource → amount, for one member
    asks: dict[str, int]
    #: domains of that level
    domains: int
    #: of these, domains with room for all members that are needed
    fitting: int
    #: members that the largest domain could take if it were empty
    largest: int


class Decision(msgspec.Struct, frozen=True):
    """``decision`` is "plan", "wait" or "reject"."""

    #: the gang's key
    gang: str
    #: of the state that was decided on
    generation: int
    decision: str

    # plan
    #: members that get a node
    members: int | UnsetType = UNSET
    #: members above the minimum that get none
    left_over: int | UnsetType = UNSET
    #: whether no other placement is on fewer domains
    proven: bool | UnsetType = UNSET
    #: level → domains that are used
    domains: dict[str, int] | UnsetType = UNSET

    # wait, reject
    #: fixed words for the kind of cause
    reason: str | UnsetType = UNSET
    #: reject: what is wrong with the gang as it is written
    message: str | UnsetType = UNSET

    # wait
    #: nodes that were looked at
    nodes: int | UnsetType = UNSET
    #: of these, nodes that can take one more member now
    feasible: int | UnsetType = UNSET
    rules: tuple[RuleAnswer, ...] | UnsetType = UNSET
    #: None where no domain was compared
    nearest: Nearest | UnsetType | None = UNSET
    #: what would help, "" where nothing is known
    remedy: str | UnsetType = UNSET
    #: what the gang waits for where that is no node, "" otherwise
    cause: str | UnsetType = UNSET
    #: ISO 8601: from when the preferred level is no longer required; None: never
    relaxes_at: str | UnsetType | None = UNSET
    #: what the pods ask for that only kube-scheduler decides
    unmodelled: tuple[str, ...] | UnsetType = UNSET
