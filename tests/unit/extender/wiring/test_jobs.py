"""When the background jobs of an extender begin."""

import asyncio

from extender.app import Job
from extender.wiring.jobs import Gates, JobGroups


class Began:
    """A set of jobs that note that they have begun."""

    def __init__(self) -> None:
        self.gates = Gates(asyncio.Event(), asyncio.Event())
        self.names: set[str] = set()
        works = JobGroups(
            at_once={"sync": self._job("sync")},
            once_listed={"census": self._job("census")},
            as_leader={"repairer": self._job("repairer")},
            informed={"statuses": self._job("statuses")},
        )
        self.jobs = works.behind(self.gates)

    def _job(self, name: str) -> Job:
        async def run() -> None:
            self.names.add(name)

        return run

    async def after_a_while(self) -> set[str]:
        """Let everything run that can; return which jobs have begun so far."""
        for _ in range(5):
            await asyncio.sleep(0)
        return set(self.names)


async def test_each_job_begins_when_what_it_waits_for_has_come() -> None:
    it = Began()
    async with asyncio.TaskGroup() as group:
        for job in it.jobs.values():
            group.create_task(job())
        assert await it.after_a_while() == {"sync"}
        it.gates.listed.set()
        assert await it.after_a_while() == {"sync", "census"}
        it.gates.begun.set()
        assert await it.after_a_while() == {"sync", "census", "repairer", "statuses"}


async def test_a_leader_that_has_not_listed_everything_writes_no_status() -> None:
    it = Began()
    async with asyncio.TaskGroup() as group:
        for job in it.jobs.values():
            group.create_task(job())
        it.gates.begun.set()
        assert await it.after_a_while() == {"sync", "repairer"}
        it.gates.listed.set()
        assert await it.after_a_while() == {"sync", "census", "repairer", "statuses"}
