"""The help page, made from the bindings."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import ModalScreen

from tpusmi.report import rows, words
from tpusmi.tui.chrome import SIMULATED
from tpusmi.tui.frame import EDGES, MARGIN, framed
from tpusmi.tui.keys import key_names
from tpusmi.tui.lines import Lines
from tpusmi.tui.look import Look, Row, width_of
from tpusmi.tui.processes import LETTERS, SILENT, STALE
from tpusmi.tui.processes import UNKNOWN as UNKNOWN_PHASE

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
        width = min(max(map(width_of, self._text)) + MARGIN, self.size.width)
        room = min(len(self._text), max(0, self.size.height - EDGES))
        self._top = min(max(self._top, 0), len(self._text) - room)
        shown = self._text[self._top : self._top + room]
        self._box.styles.width, self._box.styles.height = width, room + EDGES
        more = self._top + room < len(self._text)
        self._box.show(framed(self._look, shown, width, more=more))


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
    yield look.line((f"{STALE} left over (stale): holds the TPU and will not work again", "plain"))
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
