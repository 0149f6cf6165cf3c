"""A panel that is drawn anew on a terminal while something runs, and is gone afterwards."""

from __future__ import annotations

from types import TracebackType
from typing import Self

from rich.console import Console, RenderableType
from rich.live import Live


class LivePanel:
    """Draws between enter and exit where ``draws`` is set; otherwise ``draw`` does nothing."""

    def __init__(self, console: Console, *, draws: bool, per_second: float) -> None:
        self._console, self._per_second = console, per_second
        self._live: Live | None = None
        #: Whether there is a terminal to draw on, before the start and after the end as well.
        self.draws = draws

    def __enter__(self) -> Self:
        if self.draws:
            self._live = Live(
                console=self._console, refresh_per_second=self._per_second, transient=True
            )
            self._live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._live is not None:
            self._live.stop()
            self._live = None

    @property
    def is_live(self) -> bool:
        """Whether it draws right now."""
        return self._live is not None

    def draw(self, picture: RenderableType) -> None:
        """Draw another picture."""
        if self._live is not None:
            self._live.update(picture)
