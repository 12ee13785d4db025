"""The state that the pages of a host and of a fleet have in common."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from tpusmi.tui.draw.look import Look

INTERVALS_S = (0.25, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0)


class LookOptions(Protocol):
    """Options of a dashboard that decide how things look."""

    @property
    def ascii(self) -> bool: ...

    @property
    def color(self) -> bool: ...

    @property
    def theme(self) -> str | None: ...

    @property
    def colors(self) -> Mapping[str, str]: ...

    @property
    def terminal_colors(self) -> int: ...


def look_of(options: LookOptions) -> Look:
    """How things look with these options."""
    return Look(
        ascii=options.ascii,
        color=options.color,
        theme=options.theme,
        colors=options.colors,
        terminal_colors=options.terminal_colors,
    )


class BaseScene:
    """How things look, how often they are read, and the message about the last key."""

    def __init__(self, look: Look, interval_s: float) -> None:
        self.look, self.interval_s = look, interval_s
        self.paused = False
        self.late_s = 0.0
        """How long the source has not answered, if that is long; else 0."""
        self.message = ""
        """The effect of the last key, shown in place of the footer."""

    @property
    def picture_name(self) -> str:
        """What a screenshot is named after; empty before there is anything to show."""
        return ""

    def change_interval(self, step: int) -> None:
        """Refresh slower, or faster if `step` is negative."""
        now_s = self.interval_s
        at = min(range(len(INTERVALS_S)), key=lambda i: abs(INTERVALS_S[i] - now_s))
        self.interval_s = INTERVALS_S[min(max(at + step, 0), len(INTERVALS_S) - 1)]
