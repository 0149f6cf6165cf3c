"""Who may lead: the decisions of one candidate for a Lease, without I/O and without a clock.

::

                      read every retry_s, and when the watch says that it changed
                         ┌────┐
                         ▼    │      free and eligible: Take
      start ──────► STANDING BY ─────────────────────────────────────► LEADING ─┐ Renew
                       │  ▲              acknowledged                    │  ▲   │ every
                absent │  │ written; its duration                        │  └───┘ retry_s
                       ▼  │ passes first                                 ▼
                      Create                                           LOST: for good
                                                                       · no renewal acknowledged
      a Lease is free                                                    for deadline_s
        · released: at once                                            · somebody else holds it
        · held: when that version was seen for its whole duration

The rules are client-go's (tools/leaderelection/leaderelection.go), and two stricter ones:

* A renewal counts from the moment it was *sent*, and only if its answer arrived. Others count
  from when they *saw* it, which is later. So the leader's time is always over first.
* A candidate that creates the Lease does not lead by that. Perhaps the Lease was deleted and its
  leader does not know it yet, so the leader's time must pass first. A candidate cannot wait for
  absence itself: two reads that find no Lease do not prove that there was none in between; two
  reads of the same version do.

Clocks are never compared: each candidate measures on its own, and times in the Lease are for
people. The clocks only have to run equally fast, within the margin that ``lease_s`` leaves above
``deadline_s`` and the time-out of a write.

A Lease is only ever written at the version that the decision was based on, so of two candidates
that decide alike the API server refuses one.
"""

from dataclasses import dataclass, replace
from typing import Final

from muster.kube.http.fence import NEVER

ABSENT_RETRIES: Final = (
    2  # a leader whose Lease was deleted notices that within so many, and creates it first
)


@dataclass(frozen=True, slots=True)
class ElectionTimes:
    """Times in seconds; ``retry_s`` < ``deadline_s`` < ``lease_s``."""

    #: How long others wait after they saw a renewal.
    lease_s: float
    #: How long a leader goes on leading after it sent a renewal that was acknowledged.
    deadline_s: float
    #: Between two attempts.
    retry_s: float


@dataclass(frozen=True, slots=True)
class LeaseRecord:
    """A Lease as the API server has it."""

    #: Its resourceVersion.
    version: str
    #: "": it was released.
    holder: str
    #: Seconds after which others may take it, counted from when they saw this version.
    duration_s: float
    #: How often it was taken. 0: it was created, and no candidate has led by it.
    transitions: int


@dataclass(frozen=True, slots=True)
class Sight:
    """What was read last."""

    #: ``None``: there was no Lease.
    record: LeaseRecord | None
    #: When this version may be taken.
    free_at: float


@dataclass(frozen=True, slots=True)
class Rest:
    """Do nothing until a time, or until the watch reports a change."""

    until: float


@dataclass(frozen=True, slots=True)
class Read:
    """Read the Lease."""


@dataclass(frozen=True, slots=True)
class Create:
    """Create the Lease, with ourselves as its holder."""


@dataclass(frozen=True, slots=True)
class Take:
    """Become the holder of the Lease at this version."""

    version: str
    #: The count to write.
    transitions: int


@dataclass(frozen=True, slots=True)
class Renew:
    """Write the Lease that is ours already, at this version."""

    version: str


@dataclass(frozen=True, slots=True)
class Lost:
    """Stop: the Lease is not ours any more, or soon may not be."""

    reason: str


Decision = Rest | Read | Create | Take | Renew | Lost


@dataclass(frozen=True, slots=True)
class Candidate:
    """What one candidate knows; all times are of its own monotonic clock, in seconds."""

    #: Its name as a holder of the Lease.
    identity: str
    rules: ElectionTimes
    #: ``None`` before the first read.
    sight: Sight | None = None
    #: When the last acknowledged write of its own was sent; ``None``: it does not lead.
    renewed_at: float | None = None
    #: When the last attempt to write began.
    wrote_at: float = NEVER
    #: When the last attempt to read began.
    read_at: float = NEVER
    #: Whether ``sight`` may be outdated.
    doubt: bool = True
    #: Nothing is sent earlier, because the last attempt failed.
    not_before: float = NEVER

    @property
    def leads_until(self) -> float:
        """When it must stop writing, unless a renewal is acknowledged before."""
        return NEVER if self.renewed_at is None else self.renewed_at + self.rules.deadline_s


def decide(me: Candidate, now: float, *, eligible: bool = True) -> Decision:
    """Return what to do at ``now``. ``eligible``: whether the candidate could lead at once."""
    return _standing_by(me, now, eligible) if me.renewed_at is None else _leading(me, now)


def _leading(me: Candidate, now: float) -> Decision:
    record = None if me.sight is None else me.sight.record
    if record is not None and record.holder != me.identity:
        return Lost(f"the lease is held by {record.holder or 'nobody'}")
    if now >= me.leads_until:
        return Lost(f"no renewal was acknowledged for {me.rules.deadline_s:g} s")
    due = max(me.not_before, NEVER if me.doubt else me.wrote_at + me.rules.retry_s)
    if now < due:
        return Rest(min(due, me.leads_until))
    if me.doubt:
        return Read()
    return Create() if record is None else Renew(record.version)


def _standing_by(me: Candidate, now: float, eligible: bool) -> Decision:  # noqa: FBT001
    if now < me.not_before:
        return Rest(me.not_before)
    next_read = me.read_at + me.rules.retry_s
    if me.sight is None or me.doubt or now >= next_read:
        return Read()
    write_at = max(_free_at(me, me.sight), me.wrote_at + me.rules.retry_s)
    if not eligible or now < write_at:
        return Rest(min(next_read, write_at) if eligible else next_read)
    match me.sight.record:
        case None:
            return Create()
        case LeaseRecord() as record if _is_taken_by(me, record):
            return Renew(record.version)
        case LeaseRecord(version=version, transitions=taken):
            return Take(version, taken + 1)


def _free_at(me: Candidate, sight: Sight) -> float:
    record = sight.record
    at_once = record is not None and (not record.holder or _is_taken_by(me, record))
    return NEVER if at_once else sight.free_at


def _is_taken_by(me: Candidate, record: LeaseRecord) -> bool:
    """Return whether our write took it and the answer was lost: it was free at that version."""
    return record.holder == me.identity and record.transitions > 0


def reading(me: Candidate, now: float) -> Candidate:
    """Return the candidate that begins to read."""
    return replace(me, read_at=now)


def writing(me: Candidate, now: float) -> Candidate:
    """Return the candidate that begins to write."""
    return replace(me, wrote_at=now)


def seen(me: Candidate, record: LeaseRecord | None, now: float) -> Candidate:
    """Return the candidate after an answer to ``Read``; ``now`` is when the answer was there.

    A version that was seen before stays free at the same time: only a change begins a new wait.
    """
    known = me.sight
    unchanged = known is not None and _version(known.record) == _version(record)
    if not unchanged:
        known = Sight(record, now + _held_s(me.rules, record))
    return replace(me, sight=known, doubt=False, not_before=NEVER)


def _held_s(rules: ElectionTimes, record: LeaseRecord | None) -> float:
    """Return for how many seconds others leave the Lease that was seen to its holder."""
    if record is None:
        return ABSENT_RETRIES * rules.retry_s
    return record.duration_s or rules.lease_s


def acknowledged(me: Candidate, record: LeaseRecord, now: float) -> Candidate:
    """Return the candidate after an answer to its write: it leads since that was sent.

    A candidate that has just created the Lease does not lead yet.
    """
    after = seen(me, record, now)
    leads = me.renewed_at is not None or record.transitions > 0
    return replace(after, renewed_at=me.wrote_at) if leads else after


def outrun(me: Candidate) -> Candidate:
    """Return the candidate after its write was refused: another candidate wrote first."""
    return replace(me, doubt=True)


def failed(me: Candidate, now: float, wait_s: float) -> Candidate:
    """Return the candidate after an attempt without an answer, or an error."""
    return replace(me, doubt=True, not_before=now + wait_s)


def hinted(me: Candidate) -> Candidate:
    """Return the candidate after a watch reported a change: it has to read the Lease."""
    return replace(me, doubt=True)


def _version(record: LeaseRecord | None) -> str | None:
    return None if record is None else record.version
