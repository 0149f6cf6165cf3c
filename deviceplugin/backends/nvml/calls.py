"""Calls of NVML in the child process: what counts as "does not tell", and the heartbeat.

    an NVMLError of          means                                      is answered by
    ─────────────────────────────────────────────────────────────────────────────────────────
    ABSENT                   this GPU or driver has no such thing       None for the field
    BROKEN                   the library does not fit the driver,       the child ends and a
                             or the driver is gone                      fresh one is started
    anything else            this GPU does not answer                   the GPU is lost, the
                                                                        others stay

nvmlShutdown does not unload the library, and a library once loaded never fits a driver that was
exchanged under it: hence a fresh process.
"""

from collections.abc import Callable
from typing import Final, TypeVar

import pynvml

T = TypeVar("T")

ABSENT: Final = frozenset(
    (
        pynvml.NVML_ERROR_INVALID_ARGUMENT,
        pynvml.NVML_ERROR_NOT_SUPPORTED,
        pynvml.NVML_ERROR_NO_PERMISSION,
        pynvml.NVML_ERROR_NOT_FOUND,
        pynvml.NVML_ERROR_INSUFFICIENT_SIZE,
        pynvml.NVML_ERROR_FUNCTION_NOT_FOUND,
        pynvml.NVML_ERROR_CORRUPTED_INFOROM,
        pynvml.NVML_ERROR_NO_DATA,
        pynvml.NVML_ERROR_ARGUMENT_VERSION_MISMATCH,
        pynvml.NVML_ERROR_DEPRECATED,
        pynvml.NVML_ERROR_NOT_READY,
        pynvml.NVML_ERROR_INVALID_STATE,
    )
)
BROKEN: Final = frozenset(
    (
        pynvml.NVML_ERROR_UNINITIALIZED,
        pynvml.NVML_ERROR_DRIVER_NOT_LOADED,
        pynvml.NVML_ERROR_LIBRARY_NOT_FOUND,
        pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH,
    )
)


class Calls:
    """The one way to NVML. ``beat`` is called after each call that came back."""

    def __init__(self, beat: Callable[[], None]) -> None:
        self._beat = beat

    def ask(self, call: Callable[..., T], *args: object) -> T:
        """Return what NVML answers. Raises ``NVMLError``."""
        try:
            return call(*args)
        finally:
            self._beat()

    def answer(self, call: Callable[..., T], *args: object) -> T | None:
        """Return what NVML answers, None where there is no such thing. Raises ``NVMLError``."""
        try:
            return self.ask(call, *args)
        except pynvml.NVMLError as error:
            if error.value in ABSENT:
                return None
            raise


def is_broken(error: Exception) -> bool:
    """Return whether no GPU at all can be asked any more."""
    return getattr(error, "value", 0) in BROKEN


def said(error: Exception) -> str:
    """Return NVML's words and number for an error."""
    return f"{error} (nvmlReturn_t {getattr(error, 'value', 0)})"
