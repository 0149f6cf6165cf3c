"""What containers get with their devices, and the CDI specs for it.

``Containers`` is an ``AnswerMaker`` of ``deviceplugin.handshake.handshake``.
"""

import logging
from pathlib import Path
from typing import Final

from deviceplugin import deviceinfo
from deviceplugin.allocation.answers import ContainerAnswers
from deviceplugin.allocation.settings import AllocationSettings
from deviceplugin.cdi.writer import STATIC, Writer
from deviceplugin.deviceinfo import DeviceInfoFiles
from deviceplugin.model.answers import ContainerAnswer
from deviceplugin.model.inventory import Inventory, Vendor
from deviceplugin.resources.advertisements import Advertisement

log = logging.getLogger(__name__)

_UVM: Final = "/dev/nvidia-uvm"


def containers(settings: AllocationSettings, root: Path) -> "Containers":
    """Return the answers for these settings. ``root``: where the host's files are mounted."""
    others = (root / STATIC.relative_to("/"),)
    writer = Writer(Path(settings.cdi_folder), others) if settings.by_cdi else None
    files = settings.by_cdi or settings.gives_files
    folder = settings.device_info_folder
    infos = DeviceInfoFiles(Path(folder)) if folder else None
    return Containers(ContainerAnswers(settings), writer, files=files, infos=infos)


class Containers:
    """``writer``: None where devices do not reach containers by CDI.

    ``files``: whether containers get device files by our word, not by NVIDIA's runtime.
    ``infos``: None where nothing is written about PCI functions for Multus.
    """

    def __init__(
        self,
        answers: ContainerAnswers,
        writer: Writer | None,
        *,
        files: bool,
        infos: DeviceInfoFiles | None = None,
    ) -> None:
        self._answers = answers
        self._infos = infos
        self._writer = writer
        self._inventory: Inventory | None = None
        self._logged: str | None = None
        self._bare: tuple[str, ...] = ()
        self._files = files
        self._no_uvm = False

    @property
    def problem(self) -> str | None:
        """Why CDI specs cannot be written; None when they are up to date."""
        return self._writer.problem if self._writer else None

    def see(self, inventory: Inventory, advertisement: Advertisement) -> None:
        """Take in what the node has, and write the specs for it."""
        self._answers.see(inventory, advertisement)
        if inventory != self._inventory or self.problem:
            self._inventory = inventory
            self._write()
        if self._infos is not None:
            self._infos.write(deviceinfo.files(inventory, advertisement))
        self._tell_no_uvm(inventory)

    def give(self, resource: str, ids: tuple[str, ...]) -> ContainerAnswer:
        """Return what a container gets. Raises ``AllocationRefused``, also without its spec."""
        answer = self._answers.give(resource, ids)
        names = (*answer.cdi, *_annotated(answer))
        if self._writer is not None and names:
            if self.problem or self._writer.disturbed():
                self._write()  # the disk may have room again, or another program changed a spec
            self._writer.check(names)
        return answer

    def _write(self) -> None:
        if self._writer is None or self._inventory is None:
            return
        self._writer.write(self._inventory)
        if self.problem and self.problem != self._logged:
            log.error("CDI specs cannot be written", extra={"problem": self.problem})
        self._logged = self.problem
        self._log_bare(self._writer.bare)

    def _log_bare(self, bare: tuple[str, ...]) -> None:
        """Warn before the first container finds no libcuda."""
        if bare and bare != self._bare:
            log.warning(
                "containers get device files and no driver libraries: no CDI spec of NVIDIA's "
                "toolkit names these GPUs; run nvidia-ctk cdi generate "
                "--device-name-strategy=uuid, or set allocation.deviceListStrategy",
                extra={"devices": ", ".join(bare)},
            )
        self._bare = bare

    def _tell_no_uvm(self, inventory: Inventory) -> None:
        """Say it before the first container fails: without this file cuInit answers 999.

        The driver makes it when the first CUDA program of the node starts, later than the others.
        """
        real = any(gpu.vendor is Vendor.NVIDIA and gpu.files for gpu in inventory.gpus)
        lacking = self._files and real and _UVM not in inventory.gpu_files
        if lacking and not self._no_uvm:
            log.warning(
                "CUDA fails in every container (cuInit: 999): the node has no %s; load the module "
                "nvidia-uvm and make the file (nvidia-modprobe -c 0 -u); it is looked for again "
                "every rescanSeconds",
                _UVM,
            )
        self._no_uvm = lacking


def _annotated(answer: ContainerAnswer) -> tuple[str, ...]:
    """Return the CDI names in a container's annotations."""
    return tuple(name for text in answer.annotations.values() for name in text.split(","))
