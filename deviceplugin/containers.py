"""What containers get, and the CDI specs behind it: the handshake's ``ContainerAnswers``."""

import logging
from pathlib import Path

from deviceplugin.allocation.answers import ContainerAnswers
from deviceplugin.allocation.settings import AllocationSettings
from deviceplugin.cdi.writer import STATIC, Writer
from deviceplugin.model.answers import ContainerAnswer
from deviceplugin.model.inventory import Inventory
from deviceplugin.resources.advertisements import Advertisement

log = logging.getLogger(__name__)


def containers(settings: AllocationSettings, root: Path) -> "Containers":
    """Return what answers by some settings. ``root``: of the host's files."""
    by_cdi = settings.device_list_strategy == "cdi-cri"
    others = (root / STATIC.relative_to("/"),)
    writer = Writer(Path(settings.cdi_folder), others) if by_cdi else None
    return Containers(ContainerAnswers(settings), writer)


class Containers:
    """``writer``: None where devices do not reach containers by CDI."""

    def __init__(self, answers: ContainerAnswers, writer: Writer | None) -> None:
        self._answers = answers
        self._writer = writer
        self._inventory: Inventory | None = None
        self._told: str | None = None
        self._bare: tuple[str, ...] = ()

    @property
    def problem(self) -> str | None:
        """Why CDI specs are not as they should be, None when they are."""
        return self._writer.problem if self._writer else None

    def see(self, inventory: Inventory, advertisement: Advertisement) -> None:
        """Hear what the node has; specs follow."""
        self._answers.see(inventory, advertisement)
        if inventory != self._inventory or self.problem:
            self._inventory = inventory
            self._write()

    def give(self, resource: str, ids: tuple[str, ...]) -> ContainerAnswer:
        """Return what a container gets. Raises ``Refused``, also where its spec is not there."""
        answer = self._answers.give(resource, ids)
        if self._writer is not None and answer.cdi:
            if self.problem or self._writer.disturbed():
                self._write()  # there may be room again, or somebody else's spec
            self._writer.check(answer.cdi)
        return answer

    def _write(self) -> None:
        if self._writer is None or self._inventory is None:
            return
        self._writer.write(self._inventory)
        if self.problem and self.problem != self._told:
            log.error("CDI specs cannot be written", extra={"problem": self.problem})
        self._told = self.problem
        self._tell_bare(self._writer.bare)

    def _tell_bare(self, bare: tuple[str, ...]) -> None:
        """Say it before the first container finds no libcuda."""
        if bare and bare != self._bare:
            log.warning(
                "containers get device files and no driver libraries: no CDI spec of NVIDIA's "
                "toolkit names these GPUs; run nvidia-ctk cdi generate "
                "--device-name-strategy=uuid, or set allocation.deviceListStrategy",
                extra={"devices": ", ".join(bare)},
            )
        self._bare = bare
