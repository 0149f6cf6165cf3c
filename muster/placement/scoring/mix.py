"""The mix of requests, learned from arrivals.

Every pod that arrives counts once, placed or not. Nothing is configured and nothing is
forgotten: a mix is a function of the arrivals, ``dump`` and ``restored`` carry it over, and
after a restart the pods that the model lists (pending ones included) make it anew.
"""

from collections.abc import Iterable, Iterator

from muster.placement.scoring.shape import Shape


class RequestMix:
    """Arrivals by shape. ``milli``: milli-GPU asked for so far; ``arrivals``: pods."""

    __slots__ = ("_counts", "arrivals", "milli")

    def __init__(self) -> None:
        self._counts: dict[Shape, int] = {}
        self.arrivals = 0
        self.milli = 0

    @classmethod
    def restored(cls, counts: Iterable[tuple[Shape, int]]) -> "RequestMix":
        """Return the mix that ``dump`` described."""
        mix = cls()
        for shape, count in counts:
            mix.arrived(shape, count)
        return mix

    def dump(self) -> tuple[tuple[Shape, int], ...]:
        """Return (shape, arrivals) in the order of first arrival."""
        return tuple(self._counts.items())

    def __iter__(self) -> Iterator[tuple[Shape, int]]:
        return iter(self._counts.items())

    def arrived(self, shape: Shape, count: int = 1) -> None:
        """Count ``count`` arrivals of a shape."""
        self._counts[shape] = self._counts.get(shape, 0) + count
        self.arrivals += count
        self.milli += count * shape.gpu
