"""Who led when: judged by the Lease and by what reached the API server.

* Leaders' writes come in *terms*: once a successor has written, no earlier leader writes again.
* A Lease does not lie idle: when its holder has not renewed it for the lease's duration, and a
  fit replica has been there all that time, it is taken.

What the election itself writes (the Lease, marks on own pods) is not a leader's write.
"""

from dataclasses import dataclass, field

from loadtest.chaos.muster import Muster
from loadtest.chaos.replica import Replica
from loadtest.testbed.client.wirejson import dig, mapping_at
from loadtest.testbed.standins.apiserver.store import Change


@dataclass(slots=True)
class Terms:
    """Follows the terms of ``muster``. Times are virtual seconds."""

    muster: Muster
    lease_s: float
    #: Time that retries may take.
    slack_s: float
    late_writes: list[str] = field(default_factory=list)
    idle: list[str] = field(default_factory=list)
    longest_take_over_s: float = 0.0
    taken: int = 0
    _writer: str = ""
    _over: set[str] = field(default_factory=set)
    _holder: str = ""
    _changed_at: float = 0.0
    _fit_since: dict[str, float] = field(default_factory=dict)

    def wrote(self, identity: str, what: str) -> None:
        """Take note of a leader's write that is being carried out."""
        if identity in self._over:
            self.late_writes.append(f"{identity} wrote after {self._writer} had: {what}")
        elif identity != self._writer:
            if self._writer:
                self._over.add(self._writer)
            self._writer = identity

    def lease(self, change: Change, now: float) -> None:
        """Take note of a change of the Lease."""
        holder = str(dig(change.obj, "spec", "holderIdentity") or "")
        if change.verb == "DELETED":
            holder = ""
        if holder and holder != self._holder and mapping_at(change.obj, "spec"):
            self.taken += 1
            fit = self._fit_since.get(holder, now)
            if self._holder and fit <= self._changed_at:
                took_s = now - self._changed_at
                self.longest_take_over_s = max(self.longest_take_over_s, took_s)
        self._holder, self._changed_at = holder, now

    def look(self, now: float) -> None:
        """Look whether a Lease lies idle."""
        if not self.muster.elects:
            return
        for replica in self.muster.replicas:
            self._follow(replica, now)
        waits_s = now - max(self._changed_at, min(self._fit_since.values(), default=now))
        if waits_s > self.lease_s + self.slack_s:
            text = f"the Lease of {self._holder or 'nobody'} lay idle for {waits_s:.0f} s"
            self.idle.append(text)
            self._changed_at = now  # reported once

    def _follow(self, replica: Replica, now: float) -> None:
        me = replica.identity
        if replica.fit:
            self._fit_since.setdefault(me, now)
        else:
            self._fit_since.pop(me, None)
        for other in [key for key in self._fit_since if key.startswith(f"{replica.name}_")]:
            if other != me:
                del self._fit_since[other]
