"""Which devices a rule means: all, the first so many, or those of a list."""

from collections.abc import Iterable, Sequence

from deviceplugin.resources.wholedevices import WholeDevice
from muster.cluster.devices.needs import is_model

Wanted = str | int | tuple[int | str, ...]
"""``devices`` of a rule."""


def pick(
    candidates: Sequence[WholeDevice], wanted: Wanted, models: Iterable[str]
) -> tuple[tuple[WholeDevice, ...], str]:
    """Return the devices that a rule means, and which of them are missing (empty: none is)."""
    beginnings = tuple(models)
    fitting = [
        candidate
        for candidate in candidates
        if not beginnings or any(is_model(candidate.gpu.model, name) for name in beginnings)
    ]
    if isinstance(wanted, tuple):
        return _listed(fitting, wanted)
    if isinstance(wanted, int):
        lacking = f"{wanted} devices, of which {len(fitting)} are" if wanted > len(fitting) else ""
        return tuple(fitting[:wanted]), lacking
    return tuple(fitting), ""


def _listed(
    candidates: Sequence[WholeDevice], wanted: Iterable[int | str]
) -> tuple[tuple[WholeDevice, ...], str]:
    by_name = {c.index: c for c in candidates} | {c.device.device: c for c in candidates}
    keys = dict.fromkeys(map(str, wanted))
    chosen = {id(by_name[key]): by_name[key] for key in keys if key in by_name}
    return tuple(chosen.values()), ", ".join(key for key in keys if key not in by_name)
