"""What NVML tells of a machine, in the child process. Asks, and concludes nothing."""

from ctypes import byref
from typing import Any

import pynvml

from deviceplugin.backends.nvml import calls as nvmlcalls
from deviceplugin.backends.nvml.calls import Calls
from deviceplugin.backends.nvml.migfacts import mig_of
from deviceplugin.backends.nvml.wire import FabricFacts, GpuFacts, LinkFacts, Looked


def look(calls: Calls, request: int) -> Looked:
    """Return everything that there is. Raises ``NVMLError`` when NVML is broken as a whole."""
    count = int(calls.ask(pynvml.nvmlDeviceGetCount))
    return Looked(
        id=request,
        driver=str(calls.answer(pynvml.nvmlSystemGetDriverVersion) or ""),
        cuda=int(calls.answer(pynvml.nvmlSystemGetCudaDriverVersion_v2) or 0),
        gpus=tuple(_gpu_or_why_not(calls, index) for index in range(count)),
    )


def _gpu_or_why_not(calls: Calls, index: int) -> GpuFacts:
    """Return a GPU's facts; a lost one costs only itself."""
    try:
        return _gpu(calls, index)
    except pynvml.NVMLError as error:
        if nvmlcalls.is_broken(error):
            raise
        return GpuFacts(index=index, lost=nvmlcalls.said(error))


def _gpu(calls: Calls, index: int) -> GpuFacts:
    handle = calls.ask(pynvml.nvmlDeviceGetHandleByIndex, index)
    pci = calls.ask(pynvml.nvmlDeviceGetPciInfo, handle)
    minor = calls.answer(pynvml.nvmlDeviceGetMinorNumber, handle)
    memory = calls.answer(pynvml.nvmlDeviceGetMemoryInfo, handle)
    major_minor = calls.answer(pynvml.nvmlDeviceGetCudaComputeCapability, handle) or (0, 0)
    return GpuFacts(
        index=index,
        uuid=str(calls.ask(pynvml.nvmlDeviceGetUUID, handle)),
        name=str(calls.answer(pynvml.nvmlDeviceGetName, handle) or ""),
        pci=str(pci.busId),
        device_id=int(pci.pciDeviceId),
        memory_bytes=int(memory.total) if memory else 0,
        minor=-1 if minor is None else int(minor),
        compute=(int(major_minor[0]), int(major_minor[1])),
        links=_links(calls, handle),
        mig=mig_of(calls, handle),
        fabric=_fabric(calls, handle),
    )


def _links(calls: Calls, handle: Any) -> tuple[LinkFacts, ...]:
    found = (_link(calls, handle, link) for link in range(pynvml.NVML_NVLINK_MAX_LINKS))
    return tuple(link for link in found if link is not None)


def _link(calls: Calls, handle: Any, link: int) -> LinkFacts | None:
    """Return one link, None where the GPU has none of that number."""
    active = calls.answer(pynvml.nvmlDeviceGetNvLinkState, handle, link)
    if active is None:
        return None
    if not active:
        return LinkFacts(link=link, active=False)
    remote = calls.answer(pynvml.nvmlDeviceGetNvLinkRemoteDeviceType, handle, link)
    pci = calls.answer(pynvml.nvmlDeviceGetNvLinkRemotePciInfo, handle, link)
    return LinkFacts(
        link=link,
        active=True,
        remote=pynvml.NVML_NVLINK_DEVICE_TYPE_UNKNOWN if remote is None else int(remote),
        pci=str(pci.busId) if pci else "",
    )


def links_up(calls: Calls, handle: Any) -> int | None:
    """Return how many NVLinks are active, None for a GPU that has none."""
    states = [
        calls.answer(pynvml.nvmlDeviceGetNvLinkState, handle, link)
        for link in range(pynvml.NVML_NVLINK_MAX_LINKS)
    ]
    there = [bool(state) for state in states if state is not None]
    return sum(there) if there else None


def _fabric(calls: Calls, handle: Any) -> FabricFacts | None:
    """Return the fabric, asked in the newest form that this driver speaks."""
    for form in (pynvml.c_nvmlGpuFabricInfo_v3_t, pynvml.c_nvmlGpuFabricInfo_v2_t):
        asked = form()
        if calls.answer(pynvml.nvmlDeviceGetGpuFabricInfoV, handle, byref(asked)) is not None:
            return FabricFacts(
                state=int(asked.state) & 0xFF,  # nvml.h: unsigned char; pynvml: four bytes
                status=int(asked.status),
                cluster=bytes(asked.clusterUuid).hex(),
                clique=int(asked.cliqueId),
                mask=int(asked.healthMask),
                summary=int(asked.healthSummary) if hasattr(asked, "healthSummary") else None,
            )
    return None
