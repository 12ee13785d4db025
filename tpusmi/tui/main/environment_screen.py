"""The variables of one process that matter to a TPU, over the main page."""

from __future__ import annotations

from typing import ClassVar

from textual.binding import Binding, BindingType

from tpusmi.model import Process
from tpusmi.report import words
from tpusmi.tui.draw.lines import EDGES, MARGIN, BoxScreen
from tpusmi.tui.draw.look import Look, Row, width_of

WIDEST = 100
NONE = (
    "No variable is known: tpusmi reads the TPU_, JAX_ and LIBTPU_ variables of processes "
    "that hold a TPU, and only where it may."
)


class EnvironmentScreen(BoxScreen[None]):
    """Lists the variables that tpusmi reads. The key that opened it also closes it."""

    CSS: ClassVar[str] = (
        "EnvironmentScreen { align: center middle; } #environment { height: 1; width: 1; }"
    )
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("e,escape,q,enter", "dismiss", "Close"),
        Binding("down,pagedown", "scroll(1)", "Scroll down"),
        Binding("up,pageup", "scroll(-1)", "Scroll up"),
    ]

    def __init__(self, look: Look, process: Process) -> None:
        super().__init__(look, "environment")
        self._process = process

    def _draw(self) -> None:
        most = max(0, min(self.size.width, WIDEST) - MARGIN)
        height = max(0, self.size.height - EDGES)
        text = self._text(most)
        room = max(0, height - 1)
        self._top = min(max(self._top, 0), max(0, len(text) - room))
        visible = text[self._top : self._top + room]
        rows = [*visible, self._look.line(("Esc closes", "dim"))]
        width = min(max(map(width_of, (*text, *rows))), most) + MARGIN
        self._show(rows, width, more=self._top + room < len(text))

    def _text(self, width: int) -> list[Row]:
        p, look = self._process, self._look
        title = f"Environment of pid {p.pid} ({p.user or words.UNKNOWN})"
        lines: list[Row] = [look.line((title, "title")), ()]
        for name, value in sorted(p.environment.items()):
            lines += look.wrapped(f"{name}={value}", width, "plain")
        return lines if p.environment else [*lines, *look.wrapped(NONE, width, "plain")]
