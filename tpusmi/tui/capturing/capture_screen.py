"""The dialog that asks whether to capture a trace of a process, and for how long."""

from __future__ import annotations

from typing import ClassVar

from textual.binding import BindingType

from tpusmi.model import Process
from tpusmi.report import words
from tpusmi.tui.draw.choice_box import CANCEL, CONFIRMING, STEPPING, ChoiceBox, choice_key
from tpusmi.tui.draw.look import SIMULATED, Look, Row

DURATIONS_MS = {"100 ms": 100, "500 ms": 500, "1 s": 1000, "2 s": 2000}
USUAL = "1 s"
COMMAND_LINES = 4


class CaptureScreen(ChoiceBox["int | None"]):
    """Asks for how long to capture; closes with milliseconds, or None."""

    CSS: ClassVar[str] = "CaptureScreen { align: center middle; } #ask { height: 1; width: 1; }"
    HINT = "1 2 3 4 choose, Enter confirms, Esc cancels"
    BINDINGS: ClassVar[list[BindingType]] = [
        *STEPPING,
        *(
            choice_key(f"{n}", f"choose('{name}')", name, f"duration-{n}")
            for n, name in enumerate(DURATIONS_MS, 1)
        ),
        # A second press of the key that opened the dialog.
        choice_key("P", f"choose('{USUAL}')", USUAL, "usual"),
        choice_key("c,5", f"choose('{CANCEL}')", "Cancel", "none"),
        *CONFIRMING,
    ]

    def __init__(self, look: Look, process: Process, *, simulated: bool = False) -> None:
        super().__init__(look, "ask", (*DURATIONS_MS, CANCEL), CANCEL)  # no slip slows a run down
        self._process, self._simulated = process, simulated

    def _answer(self, choice: str) -> int | None:
        return DURATIONS_MS.get(choice)

    def _about(self, width: int) -> list[Row]:
        look, p = self._look, self._process
        name = f"pid {p.pid} ({p.user or words.UNKNOWN})"
        simulation = (SIMULATED if self._simulated else "", "loud")
        lines = [look.line((f"Capture a trace of {name}?", "title"), ("  ", "plain"), simulation)]
        lines += look.wrapped(words.command(p.command), width, "plain")[:COMMAND_LINES]
        lines.append(())
        text = "The trace shows what its devices do: steps, idle time, MXU, and each operation."
        return [*lines, *look.wrapped(text, width, "plain")]

    def _consequence(self, choice: str, width: int) -> list[Row]:
        if choice == CANCEL:
            text = "Nothing is captured: Enter captures only after 1, 2, 3 or 4."
        else:
            text = f"Captures {choice}. It slows the job down for about that long."
        return self._look.wrapped(text, width, "plain")
