"""Which chip the cursor moves to, by where chips are on the screen. Pure."""

from __future__ import annotations

from collections.abc import Mapping

Spots = Mapping[object, tuple[int, int]]
"""Line and column of each chip by its key."""


def step_to(spots: Spots, key: object, across: int, down: int) -> object:
    """The key of the next chip in that direction: on the same line, or on the nearest one above or
    below, in the nearest column. None if there is none, or no chip has this key.
    """
    if key not in spots:
        return next(iter(spots), None)
    line, column = spots[key]

    def distance(at: tuple[int, int]) -> tuple[int, int] | None:
        """None for chips that are not in that direction."""
        if across:
            is_ahead = at[0] == line and (at[1] - column) * across > 0
            return (abs(at[1] - column), 0) if is_ahead else None
        is_ahead = (at[0] - line) * down > 0
        return (abs(at[0] - line), abs(at[1] - column)) if is_ahead else None

    ahead = {other: far for other, at in spots.items() if (far := distance(at)) is not None}
    return min(ahead, key=lambda other: ahead[other], default=None)


def nearest(spots: Spots, at: tuple[int, int], width: int) -> object:
    """The key of the chip that is drawn there, in cells of that width; None without one."""
    line, column = at
    return next(
        (key for key, spot in spots.items() if spot[0] == line and 0 <= column - spot[1] < width),
        None,
    )
