"""Which extended resources are accelerators: ``accelerators.yaml``, read once.

The file is data of this package, not configuration; operators add names of their own
through ``ManagedConfig.accelerators``.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import resources

import msgspec

from muster.kube import wire
from muster.kube.quantity import QuantityError, to_nanos


class Accelerator(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One entry of the file: an exact ``resource`` or the ``prefix`` of a family."""

    vendor: str
    source: str
    resource: str = ""
    prefix: str = ""


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    version: int
    accelerators: tuple[Accelerator, ...]


@dataclass(frozen=True, slots=True)
class Accelerators:
    """Exact resource names, and prefixes of families of names.

    ``vendors``: who makes them, by name or prefix.
    """

    resources: frozenset[str]
    prefixes: tuple[str, ...] = ()
    vendors: Mapping[str, str] = field(default_factory=dict)

    def __contains__(self, resource: str) -> bool:
        """Return whether the resource is an accelerator."""
        return resource in self.resources or resource.startswith(self.prefixes)

    def asked_by(self, spec: wire.PodSpec) -> bool:
        """Return whether any container or init container asks for more than none of one.

        Limits are enough to look at where they stand: for extended resources the API
        demands requests equal to limits, and templates often write limits only.
        """
        return any(
            self._asked(container.resources)
            for container in (*spec.containers, *spec.init_containers)
        ) or (spec.resources is not None and self._asked(spec.resources))

    def plus(self, more: Iterable[str]) -> "Accelerators":
        """Return these and more; a name that ends in ``*`` is a prefix."""
        names = tuple(more)
        prefixes = tuple(name[:-1] for name in names if name.endswith("*"))
        exact = frozenset(name for name in names if not name.endswith("*"))
        return Accelerators(self.resources | exact, self.prefixes + prefixes, self.vendors)

    def vendor(self, resource: str) -> str:
        """Return the vendor of an accelerator, "" where none is known."""
        found = self.vendors.get(resource)
        if found is None:
            starts = (prefix for prefix in self.vendors if resource.startswith(prefix))
            prefix = max(starts, key=len, default="")
            found = self.vendors[prefix] if prefix in self.prefixes else ""
        return found

    def _asked(self, wanted: wire.Resources) -> bool:
        return self._any(wanted.limits) or self._any(wanted.requests)

    def _any(self, quantities: Mapping[str, wire.Quantity]) -> bool:
        return any(name in self and _positive(amount) for name, amount in quantities.items())


@cache
def load() -> Accelerators:
    """Return the accelerators of the data file."""
    data = resources.files("muster.workloads.devices").joinpath("accelerators.yaml").read_bytes()
    entries = msgspec.yaml.decode(data, type=_File).accelerators
    return Accelerators(
        frozenset(entry.resource for entry in entries if entry.resource),
        tuple(entry.prefix for entry in entries if entry.prefix),
        {entry.resource or entry.prefix: entry.vendor for entry in entries},
    )


def _positive(amount: wire.Quantity) -> bool:
    """Return whether a quantity asks for something; one that cannot be read does."""
    try:
        return to_nanos(amount) > 0
    except QuantityError:
        return True
