"""How others choose victims, re-stated from the descriptions of their rules; no code of theirs.

::

    kueue               candidates: already evicted, other queues before its own, lower priority,
                        most recently reserved; one after another until it fits, then filled back
                        in reverse order (pkg/scheduler/preemption at 0.19)
    volcano             task by task: the lowest priority on the node that frees enough first
                        (preempt, reclaim; KubeGroup of tasks, no gang is looked at); a gang that
                        falls below its minimum is lost whole
    kai                 whole gangs, lowest priority and youngest first, until it fits (KAI's
                        preempt and reclaim actions add victims one by one)
    most recent first   whole gangs, of the lowest priority the last that started first, filled back
    youngest first      the same whatever the priority: it disturbs higher ones to lose less work

Each takes only gangs that may be asked, by the same rights as the solver, and stops where a queue
would fall below what it is entitled to. All see the required rack when they look whether it fits.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from loadtest.benches.room.cases import Job, RoomCase
from loadtest.benches.room.oracle import may_give_way


@dataclass(frozen=True, slots=True)
class RuleChoice:
    """Who ends by a rule."""

    #: Members that are evicted, by gang.
    evicted: dict[str, int]
    #: Members that end, by gang: all of a gang that falls below its minimum.
    gone: dict[str, int]
    #: Device-seconds that end.
    lost: int


Rule = Callable[[RoomCase], RuleChoice | None]


def choice_of(case: RoomCase, evicted: dict[str, int]) -> RuleChoice:
    """Return what really ends when some members are evicted."""
    gone, lost = {}, 0
    for job in case.jobs:
        members = evicted.get(job.name, 0)
        if not members:
            continue
        if len(job.hosts) - members < job.minimum:
            members = len(job.hosts)
        gone[job.name] = members
        lost += job.lost(members)
    return RuleChoice(evicted, gone, lost)


def may_go(case: RoomCase, evicted: dict[str, int]) -> bool:
    """Return whether no other queue falls below what it is entitled to."""
    taken = _taken(case, evicted)
    return all(
        case.used(queue) - taken[queue] >= case.entitled[queue]
        for queue in taken
        if queue != case.asked.queue and taken[queue]
    )


def suffices(case: RoomCase, evicted: dict[str, int]) -> bool:
    """Return whether the gang fits then: nodes, its queue's limit, and what it is entitled to."""
    queue, taken = case.asked.queue, _taken(case, evicted)
    after = case.used(queue) - taken[queue] + case.asked.gpus * case.asked.members
    if after > case.limits[queue]:
        return False
    takes = any(amount for other, amount in taken.items() if other != queue)
    if takes and after > case.entitled[queue]:
        return False
    return case.fits(_free(case, evicted))


def _taken(case: RoomCase, evicted: dict[str, int]) -> Counter[str]:
    taken: Counter[str] = Counter()
    for job in case.jobs:
        taken[job.queue] += job.gpus * evicted.get(job.name, 0)
    return taken


def _free(case: RoomCase, evicted: dict[str, int]) -> list[int]:
    free = case.free()
    for job in case.jobs:
        members = evicted.get(job.name, 0)
        for host in job.hosts[len(job.hosts) - members :]:
            free[host] += job.gpus
    return free


def _whole(case: RoomCase, ordered: Sequence[Job], *, fills_back: bool) -> RuleChoice | None:
    """End whole gangs in an order until it fits."""
    evicted: dict[str, int] = {}
    for job in ordered:
        trial = evicted | {job.name: len(job.hosts)}
        if may_go(case, trial):
            evicted = trial
        if suffices(case, evicted):
            break
    else:
        return None
    for name in list(reversed(evicted))[1:] if fills_back else ():
        fewer = {other: n for other, n in evicted.items() if other != name}
        if suffices(case, fewer):
            evicted = fewer
    return choice_of(case, evicted)


def _candidates(case: RoomCase) -> list[Job]:
    return [job for job in case.jobs if may_give_way(case, job)]


def kueue(case: RoomCase) -> RuleChoice | None:
    """Kueue's classical preemption."""
    own = case.asked.queue
    ordered = sorted(
        _candidates(case), key=lambda j: (j.queue == own, j.priority, -j.started, j.name)
    )
    others = [job for job in ordered if job.queue != own]
    return _whole(case, ordered, fills_back=True) or (
        _whole(case, [job for job in ordered if job.queue == own], fills_back=True)
        if others
        else None
    )


def kai(case: RoomCase) -> RuleChoice | None:
    """KAI's preempt, then its reclaim."""
    own = case.asked.queue
    ordered = sorted(_candidates(case), key=lambda j: (j.priority, -j.started, j.name))
    inside = [job for job in ordered if job.queue == own]
    across = [job for job in ordered if job.queue != own]
    found = _whole(case, across, fills_back=False) or _whole(case, inside, fills_back=False)
    return found or _whole(case, ordered, fills_back=False)


def most_recent_first(case: RoomCase) -> RuleChoice | None:
    """Take whole gangs, of the lowest priority the last that started first."""
    return _filled_back(case, sorted(_candidates(case), key=lambda j: (j.priority, -j.started)))


def youngest_first(case: RoomCase) -> RuleChoice | None:
    """Take whole gangs, the last that started first."""
    return _filled_back(case, sorted(_candidates(case), key=lambda j: (-j.started, j.name)))


def _filled_back(case: RoomCase, ordered: Sequence[Job]) -> RuleChoice | None:
    inside = [job for job in ordered if job.queue == case.asked.queue]
    return _whole(case, ordered, fills_back=True) or _whole(case, inside, fills_back=True)


def volcano(case: RoomCase) -> RuleChoice | None:
    """Volcano's preempt and reclaim, task by task."""
    for domain in case.domains():
        found = _tasks(case, domain)
        if found is not None:
            return choice_of(case, found)
    return None


def _tasks(case: RoomCase, hosts: Iterable[int]) -> dict[str, int] | None:
    """Evict members on the hosts of a domain, one member of the gang after the other."""
    free, evicted = case.free(), dict[str, int]()
    left, there = case.asked.members, list(hosts)
    for host in there:
        tasks = _tasks_on(case, host)
        while left:
            if free[host] >= case.asked.gpus:
                free[host] -= case.asked.gpus
                left -= 1
                continue
            chosen = dict(evicted)
            room = free[host]
            used = 0
            for job in tasks:
                trial = chosen | {job.name: chosen.get(job.name, 0) + 1}
                used += 1
                if may_go(case, trial):
                    chosen, room = trial, room + job.gpus
                if room >= case.asked.gpus:
                    break
            if room < case.asked.gpus:
                break
            evicted, free[host], tasks = chosen, room, tasks[used:]
    if left:
        return None
    return evicted if _has_right(case, evicted) else None


def _has_right(case: RoomCase, evicted: dict[str, int]) -> bool:
    queue, taken = case.asked.queue, _taken(case, evicted)
    after = case.used(queue) - taken[queue] + case.asked.gpus * case.asked.members
    takes = any(amount for other, amount in taken.items() if other != queue)
    return after <= case.limits[queue] and (not takes or after <= case.entitled[queue])


def _tasks_on(case: RoomCase, host: int) -> list[Job]:
    """Return a gang for each of its members on a host, the lowest priority first."""
    tasks = [job for job in _candidates(case) for on in job.hosts if on == host]
    return sorted(tasks, key=lambda job: (job.priority, -job.started, job.name))


RULES: Final[dict[str, Rule]] = {
    "kueue": kueue,
    "volcano": volcano,
    "kai": kai,
    "most_recent_first": most_recent_first,
    "youngest_first": youngest_first,
}
