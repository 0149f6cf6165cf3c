"""Prometheus' text format, version 0.0.4, the part that is needed here.

Without prometheus-client: it would make an object for each of some hundred series at every scrape,
and series of pods that are gone would have to be removed by hand.
"""

from collections.abc import Iterable, Mapping

Number = float | int
_ESCAPED = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})


def labels(pairs: Mapping[str, str]) -> str:
    """Return ``{name="value",…}`` in the given order, without empty values."""
    shown = (f'{name}="{value.translate(_ESCAPED)}"' for name, value in pairs.items() if value)
    return f"{{{','.join(shown)}}}"


def number(value: Number) -> str:
    """Return a value as text: whole numbers exactly, others with six digits."""
    return str(int(value)) if value == int(value) else f"{value:.6g}"


def family(name: str, kind: str, text: str, samples: Iterable[tuple[str, Number]]) -> list[str]:
    """Return the lines of one metric, none where it has no samples: (labels, value) each."""
    lines = [f"{name}{where} {number(value)}" for where, value in samples]
    return [f"# HELP {name} {text}", f"# TYPE {name} {kind}", *lines] if lines else []
