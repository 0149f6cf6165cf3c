"""The phases as data: what a file says, read strictly, every wrong value named.

::

    file ──► YAML ──► msgspec (types, unknown fields) ──► rules between fields ──► Spec
                          └── SpecError: file, field, value, what is allowed
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final, Literal

import msgspec
import yaml

from loadtest.fourphase.load import chaos
from loadtest.fourphase.load.chaos import Fault

DEFAULT: Final = Path(__file__).with_name("phases.yaml")
# Pods of an Indexed Job at most (batch validation, maxParallelismForIndexedJob).
LARGEST_GANG: Final = 100_000
# User-defined PriorityClasses go to one billion (scheduling, HighestUserDefinablePriority).
HIGHEST_PRIORITY: Final = 1_000_000_000

_LABEL: Final = re.compile(r"[a-z0-9]([-a-z0-9]{0,18}[a-z0-9])?")

# Where a size comes from: published by the operator, reported by others, computed from those, or
# chosen by us.
Figure = Literal["primary", "secondary", "derived", "ours"]


class SpecError(Exception):
    """A file of phases that cannot be used; the message names file, field and value."""


class _Strict(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, rename="camel"
):
    """What every part of the file has in common."""


class PriorityClass(_Strict, frozen=True):
    """One class of work. Higher ``priority`` goes first."""

    priority: int


class Arrival(_Strict, frozen=True):
    """Work that comes during a phase."""

    class_: str = msgspec.field(name="class")
    #: Number of pods at full size.
    pods: int
    #: Size → weight, drawn until the pods are spent.
    gangs: dict[int, int]
    figure: Figure
    #: Pods per second, 0 as fast as the API server takes them.
    per_second: float = 0.0
    #: Seconds from whole to done; ``None``: it runs until it is removed.
    runs: float | None = None


class Published(_Strict, frozen=True):
    """What others reported of the same phase."""

    text: str
    figure: Figure


class Phase(_Strict, frozen=True):
    """One phase, in the order in which its fields take effect."""

    name: str
    title: str
    arrivals: tuple[Arrival, ...] = ()
    #: Class → share of its gangs that end well.
    finish: dict[str, float] = {}
    #: Shares of the nodes.
    drain: float = 0.0
    #: Shares of the nodes.
    fail: float = 0.0
    #: Faults that strike while it is placed.
    chaos: tuple[Fault, ...] = ()
    #: Seconds at rest once everything is bound.
    hold: float = 0.0
    #: Classes that leave.
    remove: tuple[str, ...] = ()
    published: tuple[Published, ...] = ()


class Spec(_Strict, frozen=True):
    """All phases."""

    #: Nodes of the cluster that the sizes are meant for.
    nodes: int
    classes: dict[str, PriorityClass]
    phases: tuple[Phase, ...]
    #: Seconds without any movement after which the gangs that still wait are given up.
    patience: float = 30.0


def load(path: Path | None = None) -> Spec:
    """Read a file of phases, by default the one that is shipped; raises ``SpecError``."""
    file = path or DEFAULT
    try:
        raw = yaml.safe_load(file.read_text(encoding="utf-8"))
        spec = msgspec.convert(raw, Spec)
    except OSError as error:
        raise SpecError(f"{file}: cannot be read: {error.strerror}") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise SpecError(f"{file}: not YAML: {error}") from error
    except msgspec.ValidationError as error:
        raise SpecError(f"{file}: {error}") from error
    problems = list(_problems(spec))
    if problems:
        raise SpecError("\n".join(f"{file}: {problem}" for problem in problems))
    return spec


def _problems(spec: Spec) -> Iterator[str]:
    """Yield what is wrong between fields, one sentence each."""
    if spec.nodes < 1:
        yield f"nodes: {spec.nodes}: give at least 1"
    for name, each in spec.classes.items():
        if not -HIGHEST_PRIORITY <= each.priority <= HIGHEST_PRIORITY:
            yield f"classes.{name}.priority: {each.priority}: at most {HIGHEST_PRIORITY}"
    for name in (*spec.classes, *(phase.name for phase in spec.phases)):
        if not _LABEL.fullmatch(name):
            yield f"name {name!r}: becomes part of pods' names: a-z, 0-9 and -, 20 at most"
    if spec.patience <= 0:
        yield f"patience: {spec.patience}: seconds, more than 0"
    if not spec.phases:
        yield "phases: none: give at least one"
    seen: set[str] = set()
    for index, phase in enumerate(spec.phases):
        at = f"phases[{index}]"
        if phase.name in seen:
            yield f"{at}.name: {phase.name!r}: give each phase a name of its own"
        seen.add(phase.name)
        yield from _phase_problems(at, phase, spec)


def _phase_problems(at: str, phase: Phase, spec: Spec) -> Iterator[str]:
    known = ", ".join(spec.classes)
    named = [("remove", c) for c in phase.remove] + [("finish", c) for c in phase.finish]
    for field, name in named:
        if name not in spec.classes:
            yield f"{at}.{field}: {name!r} is no class: there are {known}"
    shares = {"drain": phase.drain, "fail": phase.fail}
    shares |= {f"finish.{name}": share for name, share in phase.finish.items()}
    for field, share in shares.items():
        if not 0 <= share <= 1:
            yield f"{at}.{field}: {share}: a share lies between 0 and 1"
    if phase.drain + phase.fail >= 1:
        yield f"{at}: drain and fail take every node: leave some"
    yield from chaos.problems(f"{at}.chaos", phase.chaos)
    if phase.hold < 0:
        yield f"{at}.hold: {phase.hold}: seconds, at least 0"
    for index, arrival in enumerate(phase.arrivals):
        yield from _arrival_problems(f"{at}.arrivals[{index}]", arrival, spec)


def _arrival_problems(at: str, arrival: Arrival, spec: Spec) -> Iterator[str]:
    if arrival.class_ not in spec.classes:
        yield f"{at}.class: {arrival.class_!r} is no class: there are {', '.join(spec.classes)}"
    if not 1 <= arrival.pods <= spec.nodes:
        yield f"{at}.pods: {arrival.pods}: a pod takes a host, so between 1 and nodes {spec.nodes}"
    if not arrival.gangs:
        yield f"{at}.gangs: none: give sizes and their weights, as {{256: 1}}"
    for size, weight in arrival.gangs.items():
        if not 1 <= size <= LARGEST_GANG:
            yield f"{at}.gangs: {size}: an Indexed Job has between 1 and {LARGEST_GANG} pods"
        if weight < 1:
            yield f"{at}.gangs.{size}: weight {weight}: give at least 1"
    if arrival.per_second < 0:
        yield f"{at}.perSecond: {arrival.per_second}: at least 0 (0: as fast as it goes)"
    if arrival.runs is not None and arrival.runs <= 0:
        yield f"{at}.runs: {arrival.runs}: seconds, more than 0; leave it out to run on"
