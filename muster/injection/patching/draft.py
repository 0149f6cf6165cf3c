"""Which of the wanted additions a pod gets: the user's own values always win.

::

    pod ──► Draft ◄── take(additions) … one source after the other, the first one wins
              │
              ├─► operations()   the patch that makes it so
              └─► record()       what was set by whom, and what of the user's stayed

A field that the pod has stays as it is; if the source wanted another value the record says so.
Adding what is there already adds nothing, so a second run over a patched pod is empty.

Environment variables go before the user's, which may then refer to them as ``$(NAME)``
(Kubernetes expands only what was defined earlier); tolerations, networks and volumes go after.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from muster.injection.patching import record
from muster.injection.patching.additions import Additions, ContainerAdditions, ContainerPlace
from muster.injection.patching.containers import ContainerDraft, container_at
from muster.injection.patching.emission import WantedAdditions, WantedContainer, operations
from muster.injection.patching.operations import Operation
from muster.injection.patching.record import InjectionRecord
from muster.injection.podview import PodView
from muster.kube.kinds import multus
from muster.kube.wire import Toleration


@dataclass(slots=True)
class Draft:
    """One pod being decided about."""

    pod: PodView
    _wanted: WantedAdditions = field(default_factory=WantedAdditions)
    _set: dict[str, list[str]] = field(default_factory=dict)
    _kept: dict[str, str] = field(default_factory=dict)
    _earlier: frozenset[str] = frozenset()
    warnings: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Look up what an earlier call set: that is no user's value which could be kept."""
        text = self.pod.metadata.annotations.get(record.ANNOTATION, "")
        self._earlier = record.set_before(text)

    def take(self, additions: Additions) -> None:
        """Take over what the pod, and the sources before, do not say already."""
        source, spec, meta = additions.source, self.pod.spec, self.pod.metadata
        wanted = self._wanted
        if additions.labels:
            self._keys(source, "labels", meta.labels, wanted.labels, additions.labels)
        if additions.annotations:
            notes = wanted.annotations
            self._keys(source, "annotations", meta.annotations, notes, additions.annotations)
        if additions.node_selector:
            there, asked = spec.node_selector, additions.node_selector
            self._keys(source, "nodeSelector", there, wanted.node_selector, asked)
        if additions.volumes or additions.claims or additions.sidecars:
            self._named(source, additions)
        if additions.tolerations:
            self._tolerations(source, additions.tolerations)
        if additions.networks:
            self._networks(source, additions.networks)
        if additions.host_network or additions.runtime_class or additions.priority_class:
            self._scalars(source, additions)
        for place, asks in additions.containers:
            self._container(source, place, asks)
        self.warnings.extend(additions.warnings)

    def annotate(self, annotations: Mapping[str, str]) -> None:
        """Write annotations beside, whatever the pod says; the ledger does not list them."""
        self._wanted.annotations.update(annotations)

    def record(self) -> InjectionRecord:
        """Return what was set by whom, and what stayed."""
        return InjectionRecord(
            {source: tuple(names) for source, names in self._set.items()}, self._kept
        )

    def operations(self) -> tuple[Operation, ...]:
        """Return the patch, with the ledger; empty where nothing is to be changed."""
        if self._set or self._kept:
            before = self.pod.metadata.annotations.get(record.ANNOTATION, "")
            text = self.record().text(before)
            if text != before:
                self._tell(text)
        return tuple(operations(self.pod, self._wanted))

    def _tell(self, ledger: str) -> None:
        """Write the ledger, unless the pod would be refused for all that its annotations say."""
        notes = {**self.pod.metadata.annotations, **self._wanted.annotations}
        if record.fits(notes, ledger):
            self._wanted.annotations[record.ANNOTATION] = ledger
        else:
            self.warnings.append(f"{record.ANNOTATION}: left out, {record.TOO_MUCH}")

    def _put(self, source: str, name: str) -> None:
        self._set.setdefault(source, []).append(name)

    def _keep(self, source: str, name: str) -> None:
        if name not in self._earlier:
            self._kept.setdefault(name, source)

    def _keys(
        self,
        source: str,
        where: str,
        present: Mapping[str, str],
        taken: dict[str, str],
        wanted: Mapping[str, str],
    ) -> None:
        for key, value in wanted.items():
            there = present.get(key, taken.get(key))
            if there is None:
                taken[key] = value
                self._put(source, f"{where}[{key}]")
            elif there != value:
                self._keep(source, f"{where}[{key}]")

    def _named(self, source: str, additions: Additions) -> None:
        """Take volumes, claims and sidecars: by name."""
        spec = self.pod.spec
        volumes = {v.name for v in spec.volumes} | {v.name for v in self._wanted.volumes}
        for volume in additions.volumes:
            if self._new(source, f"volumes[{volume.name}]", volume.name in volumes):
                self._wanted.volumes.append(volume)
        claims = {c.name for c in spec.resource_claims} | {c.name for c in self._wanted.claims}
        for claim in additions.claims:
            if self._new(source, f"resourceClaims[{claim.name}]", claim.name in claims):
                self._wanted.claims.append(claim)
        names = {container.name for container in (*spec.containers, *spec.init_containers)}
        names |= {sidecar.name for sidecar in self._wanted.sidecars}
        for sidecar in additions.sidecars:
            if self._new(source, f"initContainers[{sidecar.name}]", sidecar.name in names):
                self._wanted.sidecars.append(sidecar)

    def _new(self, source: str, name: str, present: object) -> bool:
        """Note that a field is set, or kept because it is there; return whether it is set."""
        (self._keep if present else self._put)(source, name)
        return not present

    def _tolerations(self, source: str, tolerations: Iterable[Toleration]) -> None:
        there = [*self.pod.spec.tolerations, *self._wanted.tolerations]
        for wanted in tolerations:
            if not tolerated(wanted, there):
                self._wanted.tolerations.append(wanted)
                there.append(wanted)
                self._put(source, f"tolerations[{wanted.key}]")

    def _networks(self, source: str, wanted: tuple[str, ...]) -> None:
        """Merge the list of networks; one that cannot be read is the user's and stays."""
        name, notes = multus.ANNOTATION, self.pod.metadata.annotations
        try:
            there = self._wanted.annotations.get(name, notes.get(name, ""))
            text = multus.completed(there, wanted, self.pod.metadata.namespace)
        except multus.BadNetworks as error:
            self._keep(source, f"annotations[{name}]")
            self.warnings.append(f"{error}; networks were not added")
            return
        if text is not None:
            self._wanted.annotations[name] = text
            self._put(source, f"annotations[{name}]")

    def _scalars(self, source: str, additions: Additions) -> None:
        spec, wanted = self.pod.spec, self._wanted
        if additions.host_network and not spec.host_network and not wanted.host_network:
            wanted.host_network = True
            self._put(source, "hostNetwork")
        if additions.runtime_class and not wanted.runtime_class:
            different = spec.runtime_class_name not in ("", additions.runtime_class)
            if not spec.runtime_class_name:
                wanted.runtime_class = additions.runtime_class
                self._put(source, "runtimeClassName")
            elif different:
                self._keep(source, "runtimeClassName")
        if additions.priority_class and not (wanted.priority_class or spec.priority_class_name):
            wanted.priority_class = additions.priority_class
            self._put(source, "priorityClassName")

    def _container(self, source: str, place: ContainerPlace, additions: ContainerAdditions) -> None:
        present = container_at(self.pod, place)
        taken = self._wanted.containers.setdefault(place, WantedContainer())
        decision = ContainerDraft(present, taken, f"{place.within}[{present.name}]")
        decision.take(additions)
        self.warnings.extend(decision.hides(source))
        if decision.put:
            self._set.setdefault(source, []).extend(decision.put)
        for name in decision.kept:
            self._keep(source, name)


def tolerated(wanted: Toleration, present: Iterable[Toleration]) -> bool:
    """Return whether one of ``present`` tolerates all that ``wanted`` would, for as long.

    The rule of core/v1 Toleration (k8s.io/api, ``ToleratesTaint``): an empty key with ``Exists``
    tolerates every taint, an empty effect every effect, ``Exists`` every value.
    """
    for own in present:  # noqa: SIM110 - `any` is a call for each of them
        if own.key in ("", wanted.key) and _covers(own, wanted):
            return True
    return False


def _covers(own: Toleration, wanted: Toleration) -> bool:
    if own.effect not in ("", wanted.effect) or own.toleration_seconds not in (
        None,
        wanted.toleration_seconds,
    ):
        return False
    if own.operator == "Exists":
        return own.key in ("", wanted.key)
    return own.key == wanted.key and wanted.operator != "Exists" and own.value == wanted.value
