"""The time below graphs: from a minute to weeks. Pure."""

from __future__ import annotations

from tpusmi.tui.draw.look import Look, Row
from tpusmi.tui.draw.plot import SCALE_WIDTH

_STEPS_S = (10, 15, 30, 60, 120, 300, 600, 1200, 3600, 7200, 21_600, 86_400)
LABEL_EVERY = 9
"""Columns between two labels of the time axis, at least."""


def axis(look: Look, span_s: float, width: int, end: str = "now") -> Row:
    """The time below a graph of that width, its scale included: `-10m … -5m … now`."""
    room = max(1, width - SCALE_WIDTH)
    # The oldest second has a label, and those of some minutes are whole minutes.
    steps_s = [s for s in _STEPS_S if span_s % s == 0 and (s >= 60 or span_s <= 120)]
    step_s = next((s for s in steps_s if s * room / span_s >= LABEL_EVERY), steps_s[-1])
    line = [" "] * room
    back_s = 0
    while back_s <= span_s:
        text = f"-{_back(back_s)}" if back_s else end
        until = room - round(back_s * room / span_s)
        start = max(0, until - len(text))
        if start + len(text) <= room and (not back_s or line[start + len(text)] == " "):
            line[start : start + len(text)] = text
        back_s += step_s
    return look.line((" " * SCALE_WIDTH, "plain"), ("".join(line[:room]), "dim"))


def _back(seconds: int) -> str:
    """`15s`, `10m`, `2h`, `3d`."""
    sizes = ((86_400, "d"), (3600, "h"), (60, "m"))
    size, unit = next(((s, u) for s, u in sizes if seconds % s == 0), (1, "s"))
    return f"{seconds // size}{unit}"
