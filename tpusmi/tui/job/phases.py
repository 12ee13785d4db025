"""What a job was doing over time: a line of lettered runs, and shares in words. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import groupby

from tpusmi.model import PHASES, Phase
from tpusmi.report import words
from tpusmi.tui.draw.look import Look, Row
from tpusmi.tui.main.processes import LETTERS

STYLES = {
    Phase.STARTING: "graph",
    Phase.COMPILING: "warn",
    Phase.RUNNING: "good",
    Phase.IDLE: "dim",
    Phase.ENDED: "dim",
}
THIN = (Phase.IDLE, Phase.ENDED)
"""Phases without work are drawn thin: they are told apart without colours, too."""
KNOWN_RATIO = 0.98
"""The newest seconds are on their way."""


def time_line(look: Look, slots: Sequence[float | None]) -> Row:
    """A place for each slot: of every run of one phase its letter, then a line as long as it is;
    blank where unknown.
    """
    parts = []
    for number, run in groupby(slots):
        length = len(list(run))
        phase = _phase(number)
        if phase is None:
            parts.append((" " * length, "plain"))
        else:
            glyph = look.glyphs.track if phase in THIN else look.glyphs.bar
            parts.append((LETTERS[phase] + glyph * (length - 1), STYLES[phase]))
    return look.line(*parts)


def shares(seconds: Sequence[float], span_s: int) -> list[str]:
    """`running 91 %`, the most of it first, of the seconds in which the phase is known, and of how
    many these are where it is not the whole span.
    """
    found = Counter(phase for v in seconds if (phase := _phase(v)) is not None)
    total = sum(found.values())
    said = [f"{name} {_percent(n / total)}" for name, n in found.most_common()]
    return [*said, f"in {words.duration(total)}"] if 0 < total < KNOWN_RATIO * span_s else said


def _percent(share: float) -> str:
    """Whole ones, for a line that several share."""
    return f"{share:.0%}".replace("%", " %") if share >= 0.01 else words.percent(100 * share)


def _phase(number: float | None) -> Phase | None:
    """Numbers are from a file that another process wrote."""
    return PHASES[int(number)] if number is not None and 0 <= number < len(PHASES) else None
