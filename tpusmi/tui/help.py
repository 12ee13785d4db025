"""The help page, made from the bindings."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import ModalScreen
from textual.strip import Strip

from tpusmi.report import rows, words
from tpusmi.tui.chrome import SIMULATED
from tpusmi.tui.keys import key_names
from tpusmi.tui.lines import Lines
from tpusmi.tui.look import Look, Row, width_of
from tpusmi.tui.processes import LETTERS, SILENT
from tpusmi.tui.processes import UNKNOWN as UNKNOWN_PHASE

_MARGIN = 4
"""The frame and a blank column at each side."""


_COLUMNS = (
    ("MEMORY", "HBM in use of its limit; the upright mark is the peak"),
    ("ARRAYS LIVE", "arrays that code still refers to, and their bytes"),
    ("MXU", "share of the peak matrix throughput"),
    ("DUTY", "share of time the chip was busy"),
    ("BW", "share of the peak HBM bandwidth"),
    ("IDLE", "time since the TensorCore last ran"),
    ("QUEUE", "programs that wait to run"),
    ("MFU", "the model's FLOPs over the peak, as its job tells"),
    ("5 MIN", "memory in the last five minutes"),
    ("COMP", "XLA programs compiled so far"),
)


class HelpScreen(ModalScreen[None]):
    """A box over the dashboard that lists the keys."""

    CSS: ClassVar[str] = "HelpScreen { align: center middle; } #help { height: 1; width: 1; }"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding(
            "escape,q,question_mark,h,f1,enter",
            "dismiss",
            "Close",
            id="close",
            tooltip="Close this page",
        ),
        Binding("down,pagedown", "scroll(1)", "Down", id="help-down", tooltip="Further down"),
        Binding("up,pageup", "scroll(-1)", "Up", id="help-up", tooltip="Further up"),
    ]

    def __init__(self, look: Look, bindings: Iterable[Binding], simulated: bool) -> None:
        super().__init__()
        self._look = look
        self._text = list(help_lines(look, bindings, simulated))
        self._top = 0
        self._box = Lines(look, id="help")

    def compose(self) -> ComposeResult:
        yield self._box

    def on_resize(self) -> None:
        self._draw()

    def action_scroll(self, rows: int) -> None:
        """Move the page where the terminal is too small for all of it."""
        self._top += rows
        self._draw()

    def _draw(self) -> None:
        width = min(max(map(width_of, self._text)) + _MARGIN, self.size.width)
        height = min(len(self._text) + 2, self.size.height)
        self._top = min(max(self._top, 0), len(self._text) + 2 - height)
        self._box.styles.width, self._box.styles.height = width, height
        self._box.show(self._framed(self._text[self._top : self._top + height - 2], width))

    def _framed(self, lines: list[Row], width: int) -> list[Row]:
        left, across, right, down, left_below, right_below = [*self._look.glyphs.frame]
        inner = width - 2
        side = self._look.line((down, "title"))
        framed = [self._look.line((left + across * inner + right, "title"))]
        for line in lines:
            padded = Strip((*self._look.line((" ", "plain")), *line)).adjust_cell_length(inner)
            framed.append((*side, *padded, *side))
        return [*framed, self._look.line((left_below + across * inner + right_below, "title"))]


def help_lines(look: Look, bindings: Iterable[Binding], simulated: bool) -> Iterator[Row]:
    """A line for each key, then what the letters and marks mean."""
    keys: dict[str, list[str]] = {}
    for b in bindings:
        keys.setdefault(b.tooltip, []).extend(key_names(b))
    widest = max(len(" ".join(names)) for names in keys.values())
    yield look.line(("Keys", "head"), ("  ", "plain"), (SIMULATED if simulated else "", "loud"))
    for tooltip, names in keys.items():
        yield look.line((f"{' '.join(names):>{widest}}  ", "title"), (tooltip, "plain"))
    yield ()
    yield look.line(("Marks", "head"))
    letters = "  ".join(f"{letter} {phase}" for phase, letter in LETTERS.items())
    yield look.line((letters, "plain"))
    yield look.line((f"{UNKNOWN_PHASE} no agent tells", "plain"))
    yield look.line(("AGE: of the newest sample of the job's agent", "plain"))
    yield look.line((f"{SILENT} silent: alive, but its agent stopped writing", "plain"))
    yield look.line(
        (f"{words.UNKNOWN} nobody measured it; grey: old, or of a job that ended", "plain")
    )
    yield look.line((f"{rows.DITTO} of the whole chip: see the row above", "plain"))
    yield look.line(("~ nominal: what the chip has by its name", "plain"))
    yield ()
    yield look.line(("Columns", "head"))
    for title, meaning in _COLUMNS:
        yield look.line((f"{title:>{widest}}  ", "title"), (meaning, "plain"))
