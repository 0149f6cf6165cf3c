"""Variables of the user's own that take a pod off the fabric it is on, without a word.

``NCCL_NET`` names one network and no other is tried; ``NCCL_IB_DISABLE=1`` leaves TCP where the
network is IB or RoCE (NCCL user guide, Environment Variables). Both are left over from a debugging
session or from another cluster more often than they are meant.
"""

from collections.abc import Iterator
from typing import Final

from muster.injection.checks.finding import PodFinding
from muster.injection.choosing.choice import ChosenFabric, choose
from muster.injection.patching.containers import container_at, names_of
from muster.injection.podview import Container
from muster.injection.subject import Subject

_NET: Final = "NCCL_NET"
_DISABLE: Final = "NCCL_IB_DISABLE"
_CONCERNING: Final = frozenset({_NET, _DISABLE})
_VERBS: Final = "IB"  # NCCL's name of what speaks InfiniBand and RoCE
_TCP: Final = "Socket"


def silent_tcp(subject: Subject) -> Iterator[PodFinding]:
    """Yield what keeps an accelerator container off its pod's fabric."""
    places = [p for p in subject.accelerated if _concerned(container_at(subject.pod, p))]
    chosen = choose(subject) if places else None
    if chosen is None:
        return
    for place in places:
        container = container_at(subject.pod, place)
        for text in _against(container, chosen):
            yield PodFinding(f"{place.within}[{container.name}].{text}")


def _concerned(container: Container) -> bool:
    return not _CONCERNING.isdisjoint(names_of(container))


def _against(container: Container, chosen: ChosenFabric) -> Iterator[str]:
    net, name = chosen.profile.spec.net, chosen.profile.name
    for env in container.env:
        if not net or net == _TCP:
            return
        if env.name == _NET and env.value not in ("", net):
            yield f"env[{_NET}]: {env.value!r}; fabric {name} is {net}: leave it out"
        if env.name == _DISABLE and env.value == "1" and net == _VERBS:
            yield f"env[{_DISABLE}]: '1' is TCP, and fabric {name} is {net}: leave it out"
