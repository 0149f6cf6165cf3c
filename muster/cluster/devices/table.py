"""The devices of all nodes: what was published, which pods claim it, what is used.

Equal nodes share everything: a *layout* (the devices of a node, without their names) and a *state*
(a layout and what is used of each device) are interned values, and a node has the id of its state.
A hundred thousand equal nodes cost two values, and a question about all nodes is answered once per
state (``muster.cluster.devices.rooms``).

A pod on a node claims devices there, by the names in its plan or without names::

                    the node lists that the kubelet gave it
    ┌──────────────────────────────────────────────────────────────► given
    │           plan names devices, they suit and are free           │ ▲
    ├──────────────────────────────────────────────────► firm ◄──────┘ │ the node lists it,
    │                                                      │           │ or no longer does
    │                         another pod is named there │           │
  claim ── no names, or they are not free  ──► presumed ◄──┘ ◄─────────┘
    │                                             │ ▲
    └── no device has room, or none is known ──►  open: tried again at each change

*Given* devices (``muster.dev/node-allocations``) are facts and override plans. *Presumed* claims
are for pods that another scheduler placed: they have devices, but it is not known which, and the
sums must still be right. They move to other devices when a firm claim needs theirs. Names that do
not fit what a pod asks for were not written by Muster, so such a pod gets a presumed claim, too.
Claims on a spare node are firm or none. The result depends on the set of claims and not on their
order (``muster.cluster.devices.settlement``).
"""

from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from muster.cluster.columns.columns import Column
from muster.cluster.columns.paged import NameTable, NameView, PagedList
from muster.cluster.devices.claims import (
    CLAIM,
    GIVEN,
    PRESUMED,
    SPARE,
    Canonical,
    Named,
    PackedClaim,
    pack_claim,
    unpack,
)
from muster.cluster.devices.kubeletgiven import Given, GivenTable
from muster.cluster.devices.onenode import (
    WIDTH,
    Layout,
    LayoutNeed,
    PlacedShare,
    fits,
    needs_of,
    put,
)
from muster.cluster.devices.settlement import PodDevices, Settlement
from muster.cluster.devices.sharenames import named_shares, share_name
from muster.cluster.devices.view import DeviceView, pack_state, spec_of
from muster.cluster.events import DeviceSpec
from muster.cluster.ids import NO_ROW, PodUid
from muster.cluster.specs.podconstraints import PodClass


class DeviceTable:
    """The devices of all nodes, live; ``freeze`` makes a ``DeviceView``.

    ``kind``: pod row → (class id, class); ``uid``: pod row → uid.
    """

    __slots__ = (
        "_canonical",
        "_frozen",
        "_kind",
        "_measured",
        "_needs",
        "_uid",
        "_unhealthy",
        "claims",
        "disturbed",
        "given",
        "layout",
        "layouts",
        "names",
        "open",
        "state",
        "states",
    )

    def __init__(
        self,
        kind: Callable[[int], tuple[int, PodClass]],
        uid: Callable[[int], bytes],
        like: DeviceView | None = None,
    ) -> None:
        self._kind = kind
        self._uid = uid
        self._frozen: DeviceView | None = None
        self._measured: tuple[NameView[Layout], int, int] | None = None
        self._canonical = Canonical()
        self._needs: dict[
            tuple[int, int], tuple[Layout, PodClass, tuple[LayoutNeed, ...] | None]
        ] = {}
        self._unhealthy: dict[int, tuple[Layout, bool]] = {}
        self.disturbed: set[int] = set()
        """Nodes with changed devices or claims, whose plans must be checked again."""
        self.layouts: NameTable[Layout] = NameTable(like=None if like is None else like.layouts)
        self.states: NameTable[bytes] = NameTable(like=None if like is None else like.states)
        self.layout: Column[np.int32, int] = Column(
            np.int32, NO_ROW, like=None if like is None else like.layout
        )
        self.state: Column[np.int32, int] = Column(
            np.int32, NO_ROW, like=None if like is None else like.state
        )
        self.names: PagedList[tuple[str, ...]] = PagedList(
            (), like=None if like is None else like.names
        )
        self.claims: PagedList[bytes] = PagedList(b"", like=None if like is None else like.claims)
        self.given = GivenTable(uid, None if like is None else like.given)
        self.open: dict[int, dict[int, Named]] = {}
        if like is not None:
            self.open = {node: dict(named) for node, named in like.open.items()}

    # --- published devices ----------------------------------------------------------------

    def grow_nodes(self, count: int) -> None:
        """Make room for ``count`` node rows."""
        self.layout.grow(count)
        self.state.grow(count)
        self.names.grow(count)
        self.claims.grow(count)
        self.given.grow(count)
        self._frozen = None

    @property
    def node_rows(self) -> int:
        """Number of node rows there is room for."""
        return min(self.names.capacity, self.layout.capacity)

    def specs(self, node: int) -> tuple[DeviceSpec, ...]:
        """Return the devices of a node as they were published, by NUMA node, parent and name."""
        if self.layout[node] == NO_ROW:
            return ()
        slots = self.layouts[self.layout[node]]
        return tuple(
            spec_of(slot, name) for slot, name in zip(slots, self.names[node], strict=True)
        )

    def differs(self, node: int, specs: tuple[DeviceSpec, ...]) -> bool:
        """Return whether a node's devices differ from ``specs``."""
        if self.layout[node] == NO_ROW or not specs:
            return bool(specs) or self.layout[node] != NO_ROW
        slots, names = self._canonical(specs)
        return names != self.names[node] or slots != self.layouts[self.layout[node]]

    def publish(
        self,
        node: int,
        specs: tuple[DeviceSpec, ...],
        occupants: Iterable[int],
        allocations: Mapping[PodUid, tuple[str, ...]] | None = None,
    ) -> bool:
        """Replace a node's devices and settle all claims of ``occupants``, the pods on it.

        ``allocations``: names of the devices that the kubelet gave to its pods, ``None``:
        unchanged. Returns whether the state of the node changed.
        """
        if allocations is not None:
            self.given.put(node, allocations)
        wants = self._wants(node)
        for pod in occupants:
            wants.setdefault(pod, Named(()))
        old, before = self.layout[node], self.state[node]
        if self.has_unhealthy(node):
            self.disturbed.add(node)
        slots, self.names[node] = self._canonical(specs)
        self.layout[node] = self.layouts.acquire(slots) if slots else NO_ROW
        self._settle(node, wants)
        if old != NO_ROW:
            self.layouts.release(old)
        return self.state[node] != before

    def slots(self, node: int) -> Layout:
        """Return the devices of a node, without their names; none where none are known."""
        number = self.layout[node]
        return () if number == NO_ROW else self.layouts[number]

    # --- claims of pods ---------------------------------------------------------------

    def needs(self, pod: int, node: int) -> tuple[LayoutNeed, ...] | None:
        """Return what a pod needs of a node's devices; ``None``: they can never serve it."""
        number = self.layout[node]
        if number == NO_ROW:
            return ()
        class_id, pod_class = self._kind(pod)
        layout = self.layouts[number]
        known = self._needs.get((number, class_id))
        if known is None or known[0] is not layout or known[1] is not pod_class:
            known = layout, pod_class, needs_of(layout, pod_class)
            self._needs[number, class_id] = known
        return known[2]

    def placed_shares(self, pod: int, node: int, named: Sequence[str]) -> list[PlacedShare] | None:
        """Return the shares that names stand for, ``None`` if they do not suit the pod."""
        needs = self.needs(pod, node)
        if not needs:
            return None
        return named_shares(self.layouts[self.layout[node]], self.names[node], needs, named)

    def claim(self, pod: int, node: int, named: Sequence[str], *, spare: bool) -> None:
        """Claim devices on a node for a pod: those ``named``, else any that suit."""
        if self.given.to(pod, node) is not None:
            self._settle(node, self._wants(node) | {pod: Named(tuple(named), spare)})
            return
        if not self.needs(pod, node):  # it asks for none, or none that suits is known
            if named:
                self._add_open(pod, node, Named(tuple(named), spare))
            return
        placed = self.placed_shares(pod, node, named) if named else None
        free = placed is not None and fits(self.slots(node), self.uses(node), placed)
        if placed is not None and free and not self._is_unsettled(node):
            self._append(node, [pack_claim(pod, share, SPARE * spare) for share in placed])
        elif free or not spare:
            self._settle(node, self._wants(node) | {pod: Named(tuple(named), spare)})

    def take_names(self, pod: int, node: int, named: Sequence[str]) -> None:
        """Replace the names in the claim of a pod that is on its node already."""
        if self.layout[node] == NO_ROW or self.needs(pod, node):
            self._settle(node, self._wants(node) | {pod: Named(tuple(named))})

    def unclaim(self, pod: int, node: int) -> None:
        """Remove the claims of a pod on a node; other claims may get its devices."""
        named = self.open.get(node)
        if named is not None and named.pop(pod, None) is not None:
            self._frozen = None
            self.disturbed.add(node)
            if not named:
                del self.open[node]
        packed = self.claims[node]
        if not packed and node not in self.open:
            return
        rest = [claim for claim in unpack(packed) if claim.pod != pod]
        if self._is_unsettled(node):
            wants = self._wants(node)
            wants.pop(pod, None)
            self._settle(node, wants)
        elif len(rest) * CLAIM.size < len(packed):
            self._write(node, b"".join(CLAIM.pack(*claim) for claim in rest))

    def has_unhealthy(self, node: int) -> bool:
        """Return whether any device of a node is unhealthy."""
        number = self.layout[node]
        if number == NO_ROW:
            return False
        layout = self.layouts[number]
        known = self._unhealthy.get(number)
        if known is None or known[0] is not layout:
            known = self._unhealthy[number] = layout, not all(slot.healthy for slot in layout)
        return known[1]

    def named(self, pod: int, node: int) -> tuple[str, ...]:
        """Return the devices of a node that a pod's plan names."""
        named = self.open.get(node, {}).get(pod)
        return self._firm(pod, node, 0, SPARE) if named is None else named.names

    def claimed(self, pod: int, node: int) -> tuple[str, ...]:
        """Return the devices of a node that a pod is known to have; presumed ones are left out."""
        return self.had(pod, node) or self.named(pod, node)

    def had(self, pod: int, node: int) -> tuple[str, ...]:
        """Return the devices that a pod was given other than its plan names."""
        return self._firm(pod, node, GIVEN)

    def _firm(self, pod: int, node: int, *flags: int) -> tuple[str, ...]:
        claims = unpack(self.claims[node])
        return tuple(self.name(node, c) for c in claims if c.pod == pod and c.flags in flags)

    def claims_on(self, node: int) -> list[PackedClaim]:
        """Return all claims on a node that are met, firm and presumed ones."""
        return unpack(self.claims[node])

    def uses(self, node: int) -> list[int]:
        """Return what is used of each device of a node, ``WIDTH`` integers a device."""
        packed = self.states[self.state[node]]
        found: list[int] = memoryview(packed).cast("i")[1:].tolist()
        return found

    def name(self, node: int, claim: PackedClaim) -> str:
        """Return the name of a claim in a plan."""
        return share_name(self.layouts[self.layout[node]], self.names[node], claim.share)

    # --- frozen -----------------------------------------------------------------------

    def freeze(self) -> DeviceView:
        """Return everything read-only; O(pages), nothing is copied."""
        if self._frozen is None:
            count = self.node_rows
            layouts, states = self.layouts.freeze(), self.states.freeze()
            _, memory, devices = self._measured_of(layouts)
            self._frozen = DeviceView(
                layouts=layouts,
                states=states,
                known=any(one is not None for page in states.values.pages for one in page),
                largest_memory=memory,
                most_devices=devices,
                layout=self.layout.freeze(count),
                state=self.state.freeze(count),
                names=self.names.freeze(count),
                claims=self.claims.freeze(count),
                given=self.given.freeze(count),
                open={node: dict(named) for node, named in self.open.items()},
            )
        return self._frozen

    def _measured_of(self, layouts: NameView[Layout]) -> tuple[NameView[Layout], int, int]:
        """Return the layouts, MiB of the largest device in them, and the most devices of one."""
        if self._measured is None or self._measured[0] is not layouts:
            each = [one for page in layouts.values.pages for one in page if one is not None]
            memory = max((slot.shape.memory for layout in each for slot in layout), default=0)
            self._measured = layouts, memory, max(map(len, each), default=0)
        return self._measured

    def restore(
        self,
        layout: NDArray[np.int32],
        names: Iterable[tuple[str, ...] | None],
        claims: Iterable[bytes],
        given: Iterable[Given | None],
        opened: Mapping[int, dict[int, Named]],
    ) -> None:
        """Restore what ``dump`` wrote; ``layouts`` must be restored already."""
        self.grow_nodes(len(layout))
        self.layout.fill(layout)
        for node, called in enumerate(names):
            if called:
                self.names[node] = called
        self.given.restore(given)
        for node, packed in enumerate(claims):
            if self.layout[node] != NO_ROW or packed:
                self._write(node, packed)
        self.open.update(opened)

    def _is_unsettled(self, node: int) -> bool:
        """Return whether claims on a node may move when another claim is added or removed."""
        if node in self.open:
            return True
        return any(claim.flags & PRESUMED for claim in unpack(self.claims[node]))

    # --- settling ---------------------------------------------------------------------

    def _wants(self, node: int) -> dict[int, Named]:
        """Return what each pod claims on a node: names of its met claims, or its open claim."""
        wants: dict[int, Named] = {}
        for claim in unpack(self.claims[node]):
            known = wants.get(claim.pod, Named((), bool(claim.flags & SPARE)))
            unnamed = claim.flags & (PRESUMED | GIVEN)
            names = () if unnamed else (*known.names, self.name(node, claim))
            wants[claim.pod] = Named(names, known.spare)
        return wants | self.open.get(node, {})

    def _settle(self, node: int, wants: Mapping[int, Named]) -> None:
        """Settle the claims on a node anew."""
        number = self.layout[node]
        packed: list[bytes] = []
        unmet = {pod: named for pod, named in wants.items() if named.names}
        if number != NO_ROW:
            wishes = [
                PodDevices(
                    pod,
                    wants[pod],
                    self.needs(pod, node) or (),
                    None if wants[pod].spare else self.given.to(pod, node),
                )
                for pod in sorted(wants, key=self._uid)
            ]
            packed, unmet = Settlement(self.layouts[number], self.names[node]).meet(wishes)
        if unmet or node in self.open:
            self.disturbed.add(node)
        if unmet:
            self.open[node] = unmet
        else:
            self.open.pop(node, None)
        self._write(node, b"".join(packed))

    # --- writing ----------------------------------------------------------------------

    def _append(self, node: int, packed: list[bytes]) -> None:
        self._write(node, self.claims[node] + b"".join(packed))

    def _write(self, node: int, packed: bytes) -> None:
        """Write a node's claims and the state that follows from them."""
        if self.claims[node] != packed:
            self.claims[node] = packed
        old, number, new = self.state[node], self.layout[node], NO_ROW
        if number != NO_ROW:
            uses = [0] * (len(self.layouts[number]) * WIDTH)
            for claim in unpack(packed):
                put(uses, claim.share)
            new = self.states.acquire(pack_state(number, uses))
        if new != old:
            self.state[node] = new
        if old != NO_ROW:
            self.states.release(old)
        if self.has_unhealthy(node):
            self.disturbed.add(node)
        self._frozen = None

    def _add_open(self, pod: int, node: int, named: Named) -> None:
        self.open.setdefault(node, {})[pod] = named
        self._frozen = None
