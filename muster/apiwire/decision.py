"""A decision of the planner about a gang, as part of answers: numbers and words.

``decision`` determines which fields exist; the others are left out.
"""

import msgspec
from msgspec import UNSET, UnsetType


class RuleAnswer(msgspec.Struct, frozen=True):
    """A rule of placement, and what it leaves."""

    #: its name, for example "node selector"
    rule: str
    #: nodes that it removes
    removed: int
    #: which part of it removes them, "" for no detail
    detail: str


class Holder(msgspec.Struct, frozen=True):
    """A gang that has the resource that another gang lacks."""

    #: its key
    gang: str
    #: units of the resource that is short most
    amount: int
    priority: int
    #: its pods there
    pods: int
    #: ISO 8601: when the first of these started; None where it is not known
    since: str | None


class Nearest(msgspec.Struct, frozen=True):
    """The domain with room for the most of the gang's members."""

    #: label key of the level; "cluster" where no level is required
    level: str
    #: labels of the levels down to it, with "/" between
    domain: str
    #: members there is room for
    fits: int
    #: members that have to fit
    needed: int
    #: resource → amount
    short_of: dict[str, int]
    #: gang → amount
    held_by: dict[str, int]
    #: amount that pods without a gang have
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
    """A decision."""

    #: the gang's key
    gang: str
    #: generation of the state that it was made on
    generation: int
    #: "plan", "wait" or "reject"
    decision: str

    # plan
    #: members that get a node
    members: int | UnsetType = UNSET
    #: members above the minimum that get none
    left_over: int | UnsetType = UNSET
    #: whether no other placement uses fewer domains
    proven: bool | UnsetType = UNSET
    #: level → domains that are used
    domains: dict[str, int] | UnsetType = UNSET

    # wait, reject
    #: the cause, one of a closed set of phrases
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
    #: what would help, "" where that is not known
    remedy: str | UnsetType = UNSET
    #: what the gang waits for other than nodes, "" for nothing
    cause: str | UnsetType = UNSET
    #: ISO 8601: from when the preferred level is no longer required; None: never
    relaxes_at: str | UnsetType | None = UNSET
    #: constraints of the pods that only kube-scheduler checks
    unmodelled: tuple[str, ...] | UnsetType = UNSET
