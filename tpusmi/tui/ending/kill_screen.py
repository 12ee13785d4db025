"""The dialog that asks whether to end processes, and with which signal."""

from __future__ import annotations

import signal
from typing import ClassVar

from textual.binding import BindingType

from tpusmi.tui.draw.choice_box import CANCEL, CONFIRMING, STEPPING, ChoiceBox, choice_key
from tpusmi.tui.draw.look import Look, Row
from tpusmi.tui.ending.question import Text

SIGNALS = {name: int(signal.Signals[name]) for name in ("SIGTERM", "SIGINT", "SIGKILL")}


class KillScreen(ChoiceBox["int | None"]):
    """Asks how to end the chosen processes; closes with the signal to send, or None."""

    CSS: ClassVar[str] = "KillScreen { align: center middle; } #kill { height: 1; width: 1; }"
    HINT = "t i k c choose, Enter confirms, Esc cancels"
    BINDINGS: ClassVar[list[BindingType]] = [
        *STEPPING,
        # The capitals as well: a second press of the key that opened the dialog.
        choice_key("t,T,1", "choose('SIGTERM')", "SIGTERM", "term"),
        choice_key("i,I,2", "choose('SIGINT')", "SIGINT", "int"),
        choice_key("k,K,3", "choose('SIGKILL')", "SIGKILL", "kill"),
        choice_key("c,4", f"choose('{CANCEL}')", "Cancel", "none"),
        *CONFIRMING,
    ]

    def __init__(self, look: Look, text: Text, choice: str, may_end: bool) -> None:
        super().__init__(look, "kill", (*SIGNALS, CANCEL) if may_end else (CANCEL,), choice)
        self._text = text

    def _answer(self, choice: str) -> int | None:
        return SIGNALS.get(choice)

    def _about(self, width: int) -> list[Row]:
        return self._text.about(width)

    def _consequence(self, choice: str, width: int) -> list[Row]:
        return self._text.consequence(SIGNALS.get(choice), width)
