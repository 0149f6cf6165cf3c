"""Who may lead: the decisions of one candidate for a Lease, without I/O and without a clock.

::

                      read every retry_s, and when the watch says that it changed
                         ┌────┐
                         ▼    │      free and eligible: Take
      start ──────► STANDING BY ─────────────────────────────────────► LEADING ─┐ Renew
                       │  ▲              acknowledged                    │  ▲   │ every
                absent │  │ written, and waited for                      │  └───┘ retry_s
                       ▼  │ like anybody's                               ▼
                      Create                                           LOST: for good
                                                                       · no renewal acknowledged
      a Lease is free                                                    for deadline_s
        · released: at once                                            · somebody else holds it
        · held: when that version was seen for its whole duration

The rules are client-go's (tools/leaderelection/leaderelection.go), and two stricter ones:

* A renewal counts from the moment it was *sent*, and only if its answer arrived. Others count
  from when they *saw* it, which is later. So the leader's time is always over first.
* Who creates the Lease does not lead by it. Perhaps it was deleted under a leader that does not
  know it yet, so that one's time must pass first. Absence itself cannot be waited for: two
  looks that find nothing do not tell whether there was something in between; a version does.

Clocks are never compared: each candidate measures on its own, and times in the Lease are for
people. All that is asked of clocks is that they run equally fast to within the margin that
``lease_s`` leaves above ``deadline_s`` and the time-out of a write.

A Lease is only ever written at the version on which the decision rests, so of two candidates
that decide alike one is refused.
"""

from dataclasses import dataclass, replace
from typing import Final

from muster.kube.http.fence import NEVER

ABSENT_RETRIES: Final = (
    2  # a leader whose Lease was deleted finds out within so many, and goes first
)


@dataclass(frozen=True, slots=True)
class ElectionTimes:
    """Times in seconds; ``deadline_s`` < ``lease_s``, ``retry_s`` < ``deadline_s``.

    ``lease_s``: how long others wait after a renewal they saw. ``deadline_s``: how long a
    leader goes on after a renewal it sent. ``retry_s``: between two attempts.
    """

    lease_s: float
    deadline_s: float
    retry_s: float


@dataclass(frozen=True, slots=True)
class LeaseRecord:
    """A Lease as the API server has it. ``holder`` "" means released.

    ``transitions``: how often it was taken. 0: created, and nobody has led by it.
    """

    version: str
    holder: str
    duration_s: float
    transitions: int


@dataclass(frozen=True, slots=True)
class Sight:
    """What was seen (None: no Lease), and when that version may be taken."""

    record: LeaseRecord | None
    free_at: float


@dataclass(frozen=True, slots=True)
class Rest:
    """Do nothing until then, or until the watch tells of a change."""

    until: float


@dataclass(frozen=True, slots=True)
class Read:
    """Read the Lease."""


@dataclass(frozen=True, slots=True)
class Create:
    """Create the Lease, with ourselves as its holder."""


@dataclass(frozen=True, slots=True)
class Take:
    """Become the holder of the Lease at this version; ``transitions``: the count to write."""

    version: str
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
    """What one candidate knows; all times are of its own monotonic clock, in seconds.

    ``renewed_at``: when the last acknowledged write of ours was sent; None: it does not lead.
    ``wrote_at``, ``read_at``: the last attempts. ``doubt``: what was seen may be outdated.
    ``not_before``: nothing is sent earlier, because the last attempt failed.
    """

    identity: str
    rules: ElectionTimes
    sight: Sight | None = None
    renewed_at: float | None = None
    wrote_at: float = NEVER
    read_at: float = NEVER
    doubt: bool = True
    not_before: float = NEVER

    @property
    def leads_until(self) -> float:
        """When writing must stop unless a renewal is acknowledged first."""
        return NEVER if self.renewed_at is None else self.renewed_at + self.rules.deadline_s


def decide(me: Candidate, now: float, *, eligible: bool = True) -> Decision:
    """Return what to do at ``now``. ``eligible``: whether this candidate could lead at once."""
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
    """Return whether we took it and the answer was lost: it was free at the version it had."""
    return record.holder == me.identity and record.transitions > 0


def reading(me: Candidate, now: float) -> Candidate:
    """Return the candidate that begins to read."""
    return replace(me, read_at=now)


def writing(me: Candidate, now: float) -> Candidate:
    """Return the candidate that begins to write."""
    return replace(me, wrote_at=now)


def seen(me: Candidate, record: LeaseRecord | None, now: float) -> Candidate:
    """Return the candidate after an answer to ``Read``; ``now`` is when the answer was there.

    A version that was seen before keeps its time: only a change begins a new wait.
    """
    known = me.sight
    unchanged = known is not None and _version(known.record) == _version(record)
    if not unchanged:
        known = Sight(record, now + _held_s(me.rules, record))
    return replace(me, sight=known, doubt=False, not_before=NEVER)


def _held_s(rules: ElectionTimes, record: LeaseRecord | None) -> float:
    """Return how long what was seen is left alone."""
    if record is None:
        return ABSENT_RETRIES * rules.retry_s
    return record.duration_s or rules.lease_s


def acknowledged(me: Candidate, record: LeaseRecord, now: float) -> Candidate:
    """Return the candidate after an answer to its write: it leads as of when that was sent.

    Unless it has only just created the Lease.
    """
    after = seen(me, record, now)
    leads = me.renewed_at is not None or record.transitions > 0
    return replace(after, renewed_at=me.wrote_at) if leads else after


def outrun(me: Candidate) -> Candidate:
    """Return the candidate whose write was refused: somebody else wrote first."""
    return replace(me, doubt=True)


def failed(me: Candidate, now: float, wait_s: float) -> Candidate:
    """Return the candidate after an attempt without an answer, or an error."""
    return replace(me, doubt=True, not_before=now + wait_s)


def hinted(me: Candidate) -> Candidate:
    """Return the candidate that was told of a change by a watch: it reads for itself."""
    return replace(me, doubt=True)


def _version(record: LeaseRecord | None) -> str | None:
    return None if record is None else record.version
