"""Cuts a node's GPUs as a label says, GPU by GPU, and reports the progress.

    nvidia.com/mig.config changes
        │
        ▼
    pending ──every GPU's next step possible?──no──► failed (nothing was changed)
                        │ yes
                        ▼
        for each GPU: hold what will go ─► still unused? ─► one step ─► look again ─► … no step left
                        │                        └─no─► failed      └─ BackendError ─► failed
                        ▼
                     success

A GPU is cut completely or not at all (the backend undoes what it began). GPUs that were cut before
a failure stay so. The next attempt starts from there, as it looks at the GPUs again.
"""

from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Protocol, runtime_checkable

from deviceplugin.backends.backend import Backend, MigBackend
from deviceplugin.errors import BackendError
from deviceplugin.mig.layouts import Layout, LayoutError, LayoutRule, rule_for
from deviceplugin.mig.steps import Recut, Step, SwitchMode, devices_of, next_step
from deviceplugin.model.inventory import Gpu, Inventory

LABEL: Final = "nvidia.com/mig.config"
STATE_LABEL: Final = "nvidia.com/mig.config.state"
_MOST_STEPS: Final = 4  # a GPU needs two; more means that another program cuts it meanwhile


Hold = Callable[[frozenset[str]], Awaitable[None]]


class LayoutState(StrEnum):
    """Values of the state label, as mig-manager writes them."""

    PENDING = "pending"
    SUCCESS = "success"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class LayoutProgress:
    """How far a layout is applied."""

    #: name of the layout
    layout: str
    state: LayoutState
    #: why it failed; "" while it has not
    reason: str = ""


@runtime_checkable
class CuttingBackend(Backend, MigBackend, Protocol):
    """A backend whose GPUs can be cut."""


class Reconfigurer:
    """Brings the GPUs of a node to a layout.

    ``layouts`` returns the layouts for an inventory. ``in_use`` returns the ids that containers
    have now; it may raise ``LayoutError``. After ``hold`` has returned, no pod is given these
    UUIDs; with none, pods may be given every device again. ``report`` is awaited with the progress,
    for the state label.
    """

    def __init__(
        self,
        backend: CuttingBackend,
        *,
        layouts: Callable[[Inventory], Mapping[str, Layout]],
        in_use: Callable[[], Collection[str]],
        hold: Hold,
        report: Callable[[LayoutProgress], Awaitable[None]],
    ) -> None:
        self._backend = backend
        self._layouts = layouts
        self._in_use = in_use
        self._hold = hold
        self._report = report
        self._held: frozenset[str] = frozenset()

    async def apply(self, name: str) -> LayoutProgress:
        """Cut the GPUs as the layout of this name says; return and report how it ended."""
        await self._report(LayoutProgress(name, LayoutState.PENDING))
        ended = LayoutProgress(name, LayoutState.SUCCESS)
        try:
            await self._cut_all(name)
        except (LayoutError, BackendError) as error:
            ended = LayoutProgress(name, LayoutState.FAILED, str(error))
        # Not after a cancellation: then the process ends, and its holds with it.
        self._held = frozenset()
        await self._hold(self._held)
        await self._report(ended)
        return ended

    async def _cut_all(self, name: str) -> None:
        """Bring every GPU there. Raises ``LayoutError``, ``BackendError``."""
        inventory = await self._backend.inventory()
        rules = self._rules(name, inventory)
        in_use = devices_of(self._in_use())
        for gpu in inventory.gpus:  # find every refusal before the first change
            if gpu.uuid in rules:
                next_step(gpu, rules[gpu.uuid], in_use)
        for uuid, rule in rules.items():
            await self._cut_one(uuid, rule)

    def _rules(self, name: str, inventory: Inventory) -> dict[str, LayoutRule]:
        known = self._layouts(inventory)
        if name not in known:
            raise LayoutError(f"{LABEL}: {name!r} is no layout; there are {', '.join(known)}")
        rules = ((gpu.uuid, rule_for(gpu, known[name])) for gpu in inventory.gpus)
        return {uuid: rule for uuid, rule in rules if rule is not None}

    async def _cut_one(self, uuid: str, rule: LayoutRule) -> None:
        """Take steps until none is left. Raises ``LayoutError``, ``BackendError``."""
        for _ in range(_MOST_STEPS):
            gpu = await self._gpu(uuid)
            step = next_step(gpu, rule, devices_of(self._in_use()))
            if step is None:
                return
            self._held |= _touched(
                step, gpu
            )  # removed instances stay held: the kubelet may still be shown them
            await self._hold(self._held)
            if next_step(gpu, rule, devices_of(self._in_use())) == step:
                await self._take(step)
        raise LayoutError(
            f"{uuid}: still not as the layout says after {_MOST_STEPS} steps; find the program "
            "that cuts it too"
        )

    async def _gpu(self, uuid: str) -> Gpu:
        inventory = await self._backend.inventory()
        found = next((gpu for gpu in inventory.gpus if gpu.uuid == uuid), None)
        if found is None:
            raise LayoutError(f"{uuid}: no longer exists")
        return found

    async def _take(self, step: Step) -> None:
        match step:
            case SwitchMode():
                await self._backend.set_mig_mode(step.gpu, enabled=step.enabled)
            case Recut():
                await self._backend.cut(step.gpu, step.remove, step.make)


def _touched(step: Step, gpu: Gpu) -> frozenset[str]:
    """Return the UUIDs that no pod may be given during a step."""
    match step:
        case SwitchMode():
            return frozenset((gpu.uuid,))
        case Recut():
            return frozenset(step.remove)
