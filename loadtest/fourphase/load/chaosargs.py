"""``--chaos KIND[@PHASE[:SHARE]],…``: faults from the command line, put into the phases. Pure.

kill-extender@training            in the middle of that phase
gone-storm@training:0.1           when a tenth of its pods is bound
conflicts                         in every phase
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import msgspec

from loadtest.fourphase.load.chaos import Fault, Kind, problems, refusal
from loadtest.fourphase.load.spec import Spec, SpecError


@dataclass(frozen=True, slots=True)
class Wish:
    """One word of ``--chaos``."""

    fault: Fault
    #: "" is every phase.
    phase: str = ""


def with_faults(spec: Spec, given: Sequence[str], *, real: bool) -> Spec:
    """Return the phases with these faults added to their own; raises ``SpecError``.

    ``given``: what followed each ``--chaos``; ``real``: the control plane that they are for.
    """
    wishes = [wish(word.strip(), spec) for text in given for word in text.split(",")]
    phases = tuple(
        msgspec.structs.replace(
            phase,
            chaos=(*phase.chaos, *(w.fault for w in wishes if w.phase in ("", phase.name))),
        )
        for phase in spec.phases
    )
    made = msgspec.structs.replace(spec, phases=phases)
    if found := list(dict.fromkeys(_refused(made, real=real))):
        raise SpecError("\n".join(found))
    return made


def wish(word: str, spec: Spec) -> Wish:
    """Read one word; raises ``SpecError`` that names what is wrong with it."""
    name, _, where = word.partition("@")
    phase, _, share = where.partition(":")
    known = ", ".join(Kind)
    if name not in list(Kind):
        raise SpecError(f"--chaos {word}: {name!r} is no fault: there are {known}")
    phases = [each.name for each in spec.phases]
    if "@" in word and phase not in phases:
        raise SpecError(f"--chaos {word}: {phase!r} is no phase: there are {', '.join(phases)}")
    fault = Fault(kind=Kind(name), at=_share(word, share) if ":" in where else None)
    for problem in problems("", [fault]):
        raise SpecError(f"--chaos {word}: {problem.partition(': ')[2]}")
    return Wish(fault, phase)


def _share(word: str, text: str) -> float:
    try:
        return float(text)
    except ValueError as error:
        raise SpecError(
            f"--chaos {word}: {text!r} is no share of the phase's pods: give 0 to 1, as in "
            "kill-extender@training:0.5"
        ) from error


def _refused(spec: Spec, *, real: bool) -> Iterator[str]:
    for phase in spec.phases:
        for fault in phase.chaos:
            if why := refusal(fault.kind, real=real):
                yield f"phase {phase.name}: {why}"


def kinds(spec: Spec) -> frozenset[Kind]:
    """Return the kinds of fault that any phase has."""
    return frozenset(fault.kind for phase in spec.phases for fault in phase.chaos)
