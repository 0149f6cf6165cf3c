"""The kubelet's device manager as a pure model: who asks what, in which order, and what it keeps.

After kubernetes/kubernetes pkg/kubelet/cm/devicemanager/manager.go (``devicesToAllocate``): what
init containers had comes first, then what a topology hint aligns, then what the plugin prefers,
then anything. The order of resources within a container and of devices within a set is Go's,
which is random: here it is drawn.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from random import Random

from deviceplugin.allocation.table import Table
from deviceplugin.allocation.values import ListedDevices, NodePod
from deviceplugin.errors import AllocationRefused


class AdmissionError(Exception):
    """UnexpectedAdmissionError: the pod has failed for good."""


@dataclass(slots=True)
class Admitted:
    """What one pod has: container → resource → ids."""

    pod: NodePod
    has: dict[str, dict[str, set[str]]] = field(default_factory=dict)
    active: bool = True
    #: What its containers use though the kubelet has forgotten it, by resource.
    forgotten: dict[str, set[str]] = field(default_factory=dict)
    started: bool = False

    def ids(self, resource: str) -> set[str]:
        """Return all ids of the pod."""
        return set().union(*(one.get(resource, set()) for one in self.has.values()))

    def really(self, resource: str) -> set[str]:
        """Return all ids that its containers use."""
        return self.ids(resource) | self.forgotten.get(resource, set())

    def listed(self, resource: str) -> frozenset[str]:
        """Return those of containers that are listed."""
        running = (c.name for c in self.pod.containers if not c.passes_on)
        every = (self.has.get(name, {}).get(resource, set()) for name in running)
        return frozenset[str]().union(*every)


@dataclass(slots=True)
class Habits:
    """How the kubelet behaves at one admission."""

    #: Ids of the NUMA nodes of a topology hint, ``None`` without a hint.
    aligned: frozenset[str] | None = None
    #: Whether it ignores the preferred devices.
    headstrong: bool = False
    #: Whether it answers the plugin's questions for the pods that it knows.
    listens: bool = True


@dataclass(slots=True)
class PureKubelet:
    """A kubelet as a model. ``healthy``: resource → ids last reported; ``rng``: Go's map order."""

    rng: Random
    table: Callable[[], Table]
    healthy: dict[str, set[str]] = field(default_factory=dict)
    pods: dict[str, Admitted] = field(default_factory=dict)
    #: how often it has started
    start_number: int = 0
    #: pods that it has not admitted again since it started
    unlisted: set[str] = field(default_factory=set)
    #: has the plugin's watch catch up, as the plugin waits for it
    news: Callable[[], None] = lambda: None

    def listing(self) -> list[ListedDevices]:
        """Return what pod-resources List says: active pods, without plain init containers."""
        rows = []
        for uid, one in self.pods.items():
            if not one.active or uid in self.unlisted:
                continue
            meta = one.pod.namespace, one.pod.name
            rows.append(ListedDevices(*meta))
            for container in one.pod.containers:
                if container.passes_on:
                    continue
                held = one.has.get(container.name, {})
                rows += [
                    ListedDevices(*meta, container.name, resource, frozenset({each}))
                    for resource, ids in held.items()
                    for each in ids
                ]
        return rows

    def tell(self) -> None:
        """Have the plugin hear the listing."""
        table = self.table()
        table.listed(self.listing(), table.serial, self.start_number)

    def used(self, resource: str) -> set[str]:
        """Return the ids that pods have, as the kubelet counts them."""
        return set().union(*(one.ids(resource) for one in self.pods.values() if one.active))

    def free(self, resource: str) -> set[str]:
        """Return what it could still give away."""
        return self.healthy[resource] - self.used(resource)

    def admit(self, pod: NodePod, habits: Habits) -> Admitted:
        """Allocate for all containers of a pod, or fail it: then nothing of it stays."""
        one = self.pods[pod.uid] = Admitted(pod)
        reusable: dict[str, set[str]] = {}
        for container in pod.containers:
            resources = list(container.amounts)
            self.rng.shuffle(resources)
            mine: dict[str, set[str]] = {}
            for resource in resources:
                amount = container.amounts[resource]
                try:
                    ids = self._one(resource, amount, reusable.get(resource, set()), habits)
                    self._ask_before(habits, resource, doubted=ids)
                    self.table().allocate(resource, self._shuffled(ids))
                except (AllocationRefused, AdmissionError):
                    one.active = False
                    raise
                mine[resource] = ids
                one.has[container.name] = mine
            for resource, ids in mine.items():
                passed = reusable.setdefault(resource, set())
                if container.passes_on:
                    passed |= ids
                else:
                    passed -= ids
        return one

    def _one(self, resource: str, needed: int, reusable: set[str], habits: Habits) -> set[str]:
        chosen: set[str] = set()

        def take(ids: Iterable[str]) -> bool:
            for each in self._shuffled(set(ids) - chosen):
                if len(chosen) == needed:
                    break
                chosen.add(each)
            return len(chosen) == needed

        if take(reusable):
            return chosen
        available = self.free(resource)
        if len(available) < needed - len(chosen):
            raise AdmissionError(f"{pod_text(needed, resource)}: {len(available)} available")
        hinted = habits.aligned is not None and bool(habits.aligned & available)
        aligned = available & (habits.aligned or frozenset()) if hinted else set()
        if needed - len(chosen) < len(aligned):
            preferred = self._preferred(resource, aligned | chosen, chosen, needed, habits)
            if take(preferred & aligned) or take(aligned):
                return chosen
        if take(aligned):
            return chosen
        preferred = self._preferred(resource, available | chosen, chosen, needed, habits)
        if not take(preferred & available):
            take(available)
        return chosen

    def _preferred(
        self, resource: str, available: set[str], must: set[str], size: int, habits: Habits
    ) -> set[str]:
        self._ask_before(habits, resource)
        asked = self._shuffled(available), self._shuffled(must)
        answer = self.table().preferred(resource, *asked, size)
        assert len(answer) == len(set(answer)) <= size
        assert set(answer) <= available
        assert must <= set(answer)
        assert len(answer) == min(size, len(available))
        return set() if habits.headstrong else set(answer)

    def _ask_before(
        self, habits: Habits, resource: str, *, doubted: set[str] | None = None
    ) -> None:
        if not habits.listens:
            return
        if doubted is None or self.table().doubts(resource, doubted):
            self.tell()
        if doubted is not None and self.table().unvouched(resource, doubted):
            self.news()

    def _shuffled(self, ids: Iterable[str]) -> list[str]:
        found = sorted(ids)
        self.rng.shuffle(found)
        return found

    def start(self, uid: str, *, listens: bool) -> None:
        """Start the containers of a pod, one after the other."""
        self.unlisted.discard(uid)
        one = self.pods[uid]
        for container in one.pod.containers:
            for resource, ids in one.has.get(container.name, {}).items():
                if listens:
                    self.tell()
                self.table().starting(resource, self._shuffled(ids))
        one.started = True

    def restart(self) -> None:
        """Start anew: nothing is listed until it is admitted again (``readmit``)."""
        self.start_number += 1
        self.unlisted = {uid for uid, one in self.pods.items() if one.active}

    def readmit(self, many: int) -> None:
        """Admit some pods again: they keep what the checkpoint says."""
        self.unlisted -= set(self.rng.sample(sorted(self.unlisted), min(many, len(self.unlisted))))

    def lose_checkpoint(self) -> None:
        """Start anew without it: running containers go on, and what they use counts as free."""
        self.restart()
        for one in self.pods.values():
            for devices in one.has.values() if one.started else ():
                for resource, ids in devices.items():
                    one.forgotten[resource] = one.forgotten.get(resource, set()) | ids
            one.has.clear()

    def end(self, uid: str) -> None:
        """Forget a pod after the end of its containers."""
        self.pods.pop(uid, None)
        self.unlisted.discard(uid)


def pod_text(needed: int, resource: str) -> str:
    """Return what was asked for, in words."""
    return f"requested {needed} {resource}"


def names(ids: Iterable[str], of: Callable[[str], str]) -> Sequence[str]:
    """Return the names of ids as plans have them, sorted."""
    return tuple(sorted(of(each) for each in ids))
