"""What the Job controller would do for the gangs of a load: create their pods, delete them.

No Job controller runs: the Jobs are suspended objects that own the pods, and this writes the
pods in its place, the same on the simulated and on the real control plane.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator
from itertools import islice
from typing import Final

from loadtest.fourphase.load.podfields import asking
from loadtest.fourphase.load.pools import Ask
from loadtest.fourphase.site.gangowner import Entry, Place
from loadtest.fourphase.site.site import JOBS, NAMESPACE, PODS, priority_class
from loadtest.fourphase.site.watches import Seen, Watching
from loadtest.testbed.client import nodes, pods
from loadtest.testbed.client.api import JSON, Api, ApiFailed
from muster.kube import names

_GANGS_AT_ONCE: Final = 4
_WRITES_PER_GANG: Final = 8  # times the above: about where two cores' API server stops growing
_POLL_S: Final = 0.05


class Jobs:
    """Creates and deletes gangs. Writes for one gang never overlap."""

    def __init__(self, api: Api, watching: Watching, *, preempts: bool = False) -> None:
        """``preempts``: whether the gangs make others give way."""
        self._api, self._watching, self._preempts = api, watching, preempts
        self._turn = asyncio.Semaphore(_GANGS_AT_ONCE)
        self._owners: dict[str, JSON] = {}
        self._busy: dict[str, asyncio.Lock] = {}

    async def create(self, entry: Entry, seen: Seen) -> None:
        """Create the Job of a gang's present attempt, and its pods."""
        async with self._busy.setdefault(seen.name, asyncio.Lock()), self._turn:
            gang = _gang(entry, seen.name)
            owner = self._owners[seen.name] = await pods.create_owner(self._api, gang)
            members = self._members(gang, owner, entry.plan.ask)
            await nodes.create_all(self._api, PODS, members, in_flight=_WRITES_PER_GANG)

    async def replace(self, entry: Entry, seen: Seen, lost: str) -> bool:
        """Delete a lost member and create another of the same rank; False: its gang has left."""
        async with self._busy.setdefault(seen.name, asyncio.Lock()):
            if entry.place is not Place.SUBMITTED or entry.name != seen.name:
                return False
            await self._substitute(entry, seen, lost)
            return True

    async def _substitute(self, entry: Entry, seen: Seen, lost: str) -> None:
        rank = int(lost.removeprefix(f"{seen.name}-").partition("-")[0])
        substitute = f"{seen.name}-{rank}-x{len(seen.extra)}"
        self._watching.expect_substitute(seen, substitute)
        await self._delete(f"{PODS}/{lost}")
        gang = _gang(entry, seen.name)
        members = self._members(gang, self._owners[seen.name], entry.plan.ask)
        member = next(islice(members, rank, None))
        member["metadata"]["name"] = substitute
        await self._api.create(PODS, member)

    def _members(self, gang: pods.Gang, owner: JSON, ask: Ask) -> Iterator[JSON]:
        made = (asking(pod, ask) for pod in pods.members(gang, owner))
        return made if self._preempts else map(_never_preempting, made)

    async def end_pod(self, name: str) -> None:
        """End a pod that was evicted, as its kubelet does when its containers have ended."""
        await self._delete(f"{PODS}/{name}")

    async def leave(self, name: str) -> None:
        """Delete the Job of an attempt that was evicted, once all of its pods have gone."""
        while self._watching.gangs[name].present:  # noqa: ASYNC110  the watch sets no Event per gang
            await asyncio.sleep(_POLL_S)
        await self._delete(f"{JOBS}/{name}")

    async def delete(self, name: str) -> None:
        """Delete an attempt's pods and its Job, and wait until a watch has seen them go."""
        seen = self._watching.gangs[name]
        async with self._busy.setdefault(name, asyncio.Lock()), self._turn:
            await _for_each(self._delete, [f"{PODS}/{member}" for member in seen.members()])
            await self._delete(f"{JOBS}/{name}")
        while seen.present:  # noqa: ASYNC110  the watch sets no Event per gang
            await asyncio.sleep(_POLL_S)

    async def _delete(self, path: str) -> None:
        try:
            await self._api.delete(path)
        except ApiFailed as refused:
            if refused.code != 404:
                raise


def _never_preempting(pod: JSON) -> JSON:
    pod["spec"]["preemptionPolicy"] = "Never"  # as their PriorityClass; admission checks it
    return pod


def _gang(entry: Entry, name: str) -> pods.Gang:
    ask = entry.plan.ask
    return pods.Gang(
        name,
        entry.plan.size,
        gpus=ask.gpus,
        namespace=NAMESPACE,
        preferred=ask.level if entry.plan.size <= ask.near else names.BLOCK,
        priority_class=priority_class(entry.plan.class_),
    )


async def _for_each(work: Callable[[str], Awaitable[None]], paths: Iterable[str]) -> None:
    rest = iter(paths)

    async def worker() -> None:
        for path in rest:  # shared: each worker takes the next one
            await work(path)

    async with asyncio.TaskGroup() as group:
        for _ in range(_WRITES_PER_GANG):
            group.create_task(worker())
