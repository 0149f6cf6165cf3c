"""Pod specification → ``PodClass``: one value for all pods that are alike.

::

    Pod ──► take off our own pin ──► cheap key ──► in the cache? ──yes──► PodClass
                                         │
                                         no
                                         ▼
                     requests, constraints in normal form ──► interned by value

The key is the encoding of just the fields that a class is made of (about 2 µs), so a gang
of any size is normalised once. Volume names are no part of it: the token volume that the
API server adds has a random one in every pod.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Final, NamedTuple, Protocol, TypeVar

import msgspec

from muster.cluster.events import PlanNote
from muster.cluster.specs.deviceasks import NO_ASKS, DeviceAsks
from muster.cluster.specs.podconstraints import (
    GRACE_S,
    PodAffinityTerm,
    PodClass,
    SpreadConstraint,
)
from muster.kube import wire
from muster.kube.quantity import QuantityError
from muster.kube.translation import selectors
from muster.kube.translation.planannotation import (
    preferred_terms,
    required_terms,
    without_pin,
)
from muster.kube.translation.requests import PODS, pod_requests, resized_containers
from muster.kube.translation.selectors import (
    UnknownOperator,
    label_selector,
    node_terms,
    preferred_nodes,
)
from muster.kube.translation.volumes import UNCONSTRAINED, VolumeConstraints

CLASS_LIMIT: Final = 8_192
"""Entries of a cache before it is cleared. Gangs that select their own pods have a class each, of
2 KiB. This is enough for the gangs of half an hour at 1,000 pods/s; older ones are not needed.
"""

_LONGEST_GRACE_S: Final = 365 * 86_400  # an int64 of seconds is beyond all that a date can write
DYNAMIC_CLAIM: Final = "dynamic resource claim"
PER_POD_SELECTOR: Final = "selector on a label that differs for every pod"
UNREADABLE_QUANTITY: Final = "resource quantity that cannot be read"
UNKNOWN_OPERATOR: Final = "constraint with an unknown operator"

_Part = TypeVar("_Part")


class AffinityTerms(NamedTuple):
    """A pod's own node affinity, without what Muster wrote to pin it."""

    #: ORed; ``None``: nothing is required.
    required: tuple[wire.NodeSelectorTerm, ...] | None
    preferred: tuple[wire.PreferredSchedulingTerm, ...] = ()


_KEY: Final = msgspec.msgpack.Encoder()


class DeviceAskReader(Protocol):
    """Reads what pods ask of devices (``muster.workloads.devices.deviceasks``)."""

    def mentions(self, meta: wire.ObjectMeta) -> tuple[tuple[str, str], ...]:
        """Return the part of a pod's metadata that ``asks`` depends on."""

    def asks(self, pod: wire.Pod) -> DeviceAsks:
        """Return what a pod asks of devices beyond whole ones."""


class ClassCache:
    """Classes seen so far, for one cluster."""

    def __init__(self, devices: DeviceAskReader | None = None) -> None:
        self._devices = devices
        self._by_key: dict[tuple[object, ...], PodClass] = {}
        self._by_value: dict[PodClass, PodClass] = {}

    def pod_class(
        self,
        pod: wire.Pod,
        *,
        note: PlanNote | None,
        settled: bool,
        volumes: VolumeConstraints = UNCONSTRAINED,
    ) -> PodClass:
        """Return the class of ``pod``.

        ``settled``: bound, and never to be placed by Muster. The class of such a pod only has what
        the pod takes from its node and what it forbids to other pods. Otherwise every DaemonSet
        pod, which its controller pins to a node, would have a class of its own.
        """
        affinity = pod.spec.affinity
        terms = AffinityTerms(
            without_pin(required_terms(affinity), note), preferred_terms(affinity, note)
        )
        key = _settled_key(pod) if settled else _key(pod, terms, volumes)
        if self._devices is not None:
            key = (*key, self._devices.mentions(pod.metadata))
        found = self._by_key.get(key)
        if found is None:
            made = settled_class(pod) if settled else full_class(pod, terms, volumes)
            if self._devices is not None:
                made = with_devices(made, self._devices.asks(pod))
            found = self._by_value.setdefault(made, made)
            self._keep(key, found)
        return found

    def _keep(self, key: tuple[object, ...], value: PodClass) -> None:
        if len(self._by_key) >= CLASS_LIMIT:
            self._by_key.clear()
            self._by_value = {value: value}
        self._by_key[key] = value


def with_devices(pod_class: PodClass, asks: DeviceAsks) -> PodClass:
    """Return the class with its device asks, and without what kube-scheduler does not count."""
    if asks == NO_ASKS:
        return pod_class
    requests = tuple(pair for pair in pod_class.requests if pair[0] not in asks.uncounted)
    return replace(pod_class, requests=requests, devices=asks)


def full_class(
    pod: wire.Pod, terms: AffinityTerms, volumes: VolumeConstraints = UNCONSTRAINED
) -> PodClass:
    """Return a pod's class."""
    words, required = set(volumes.unmodelled), terms.required
    spread = _read(lambda: _spread(pod), words) or ()
    affinity = _read(lambda: _affinity_terms(pod, _pod_affinity(pod)), words) or ()
    against = _read(lambda: _affinity_terms(pod, _pod_anti_affinity(pod)), words) or ()
    chosen = [one.selector for one in spread] + [one.selector for one in affinity + against]
    if any(map(selectors.uses_dropped_label, chosen)):
        words.add(PER_POD_SELECTOR)
    if pod.spec.resource_claims:
        words.add(DYNAMIC_CLAIM)
    return PodClass(
        requests=_requests(pod, words),
        node_selector=tuple(sorted(pod.spec.node_selector.items())),
        node_affinity=None if required is None else _read(lambda: node_terms(required), words),
        preferred_nodes=_read(lambda: preferred_nodes(terms.preferred), set()) or (),
        volume_affinity=volumes.affinity,
        tolerations=_read(lambda: selectors.tolerations(pod.spec.tolerations), words) or (),
        host_ports=selectors.host_ports(pod.spec),
        spread=spread,
        pod_affinity=affinity,
        pod_anti_affinity=against,
        unmodelled=tuple(sorted(words)),
        grace_seconds=_grace(pod),
    )


def settled_class(pod: wire.Pod) -> PodClass:
    """Return the class of a pod that is bound and will not be placed again."""
    words: set[str] = set()
    return PodClass(
        requests=_requests(pod, words),
        host_ports=selectors.host_ports(pod.spec),
        pod_anti_affinity=_read(lambda: _affinity_terms(pod, _pod_anti_affinity(pod)), words) or (),
        unmodelled=tuple(sorted(words)),
        grace_seconds=_grace(pod),
    )


def _grace(pod: wire.Pod) -> int:
    """Return how many seconds a pod may take to end: none of a negative number, a year at most."""
    seconds = pod.spec.termination_grace_period_seconds
    return GRACE_S if seconds is None else min(max(seconds, 0), _LONGEST_GRACE_S)


def _requests(pod: wire.Pod, words: set[str]) -> tuple[tuple[str, int], ...]:
    try:
        return tuple(sorted(pod_requests(pod.spec, pod.status).items()))
    except QuantityError:
        words.add(UNREADABLE_QUANTITY)
        return ((PODS, 1),)


def _read(part: Callable[[], _Part], words: set[str]) -> _Part | None:
    """Return ``part()``; if it has operators newer than ours, ``None`` and one more word."""
    try:
        return part()
    except UnknownOperator:
        words.add(UNKNOWN_OPERATOR)
        return None


def _spread(pod: wire.Pod) -> tuple[SpreadConstraint, ...]:
    """Return the hard spread constraints (upstream ``filterTopologySpreadConstraints``)."""
    return tuple(
        SpreadConstraint(
            topology_key=c.topology_key,
            max_skew=c.max_skew,
            selector=label_selector(
                c.label_selector, labels=pod.metadata.labels, match_keys=c.match_label_keys
            ),
            namespace=pod.metadata.namespace,
            min_domains=1 if c.min_domains is None else c.min_domains,
            honor_node_affinity=c.node_affinity_policy != "Ignore",
            honor_node_taints=c.node_taints_policy == "Honor",
        )
        for c in sorted(pod.spec.topology_spread_constraints, key=repr)
        if c.when_unsatisfiable == "DoNotSchedule"
    )


def _affinity_terms(
    pod: wire.Pod, terms: tuple[wire.PodAffinityTerm, ...]
) -> tuple[PodAffinityTerm, ...]:
    """Return required (anti-)affinity terms (upstream ``newAffinityTerm``)."""
    found = {_affinity_term(pod, term) for term in terms}
    return tuple(sorted(found, key=lambda t: (t.topology_key, repr(t.selector), repr(t))))


def _affinity_term(pod: wire.Pod, term: wire.PodAffinityTerm) -> PodAffinityTerm:
    own = not term.namespaces and term.namespace_selector is None
    return PodAffinityTerm(
        topology_key=term.topology_key,
        selector=label_selector(
            term.label_selector,
            labels=pod.metadata.labels,
            match_keys=term.match_label_keys,
            mismatch_keys=term.mismatch_label_keys,
        ),
        namespaces=frozenset({pod.metadata.namespace} if own else term.namespaces),
        namespace_selector=label_selector(term.namespace_selector),
    )


def _pod_affinity(pod: wire.Pod) -> tuple[wire.PodAffinityTerm, ...]:
    affinity = pod.spec.affinity
    return (
        () if affinity is None or affinity.pod_affinity is None else affinity.pod_affinity.required
    )


def _pod_anti_affinity(pod: wire.Pod) -> tuple[wire.PodAffinityTerm, ...]:
    affinity = pod.spec.affinity
    if affinity is None or affinity.pod_anti_affinity is None:
        return ()
    return affinity.pod_anti_affinity.required


def _key(pod: wire.Pod, terms: AffinityTerms, volumes: VolumeConstraints) -> tuple[object, ...]:
    spec = pod.spec
    fields = (
        terms,
        spec.node_selector,
        spec.tolerations,
        bool(spec.resource_claims),
        _pod_affinity(pod),
        spec.topology_spread_constraints,
    )
    return (*_settled_key(pod), _KEY.encode(fields), volumes)


def _settled_key(pod: wire.Pod) -> tuple[object, ...]:
    spec = pod.spec
    against = _pod_anti_affinity(pod)
    fields = (
        spec.containers,
        spec.init_containers,
        spec.overhead,
        spec.resources,
        against,
        spec.termination_grace_period_seconds,
    )
    selects = against or spec.topology_spread_constraints or _pod_affinity(pod)
    # Selectors are resolved against the pod's own namespace and labels.
    own = (pod.metadata.namespace, selectors.kept_labels(pod.metadata.labels)) if selects else None
    return (_KEY.encode(fields), own, _resized(pod))


def _resized(pod: wire.Pod) -> str:
    """Return the part of the status that counts; "" for nearly every pod."""
    try:
        found = resized_containers(pod.spec, pod.status)
    except QuantityError:
        return ""
    return repr(found) if found else ""
