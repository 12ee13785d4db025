"""The filter of processes on the main page, as it is typed."""

from __future__ import annotations

from tpusmi.report.filters import user_of, with_user
from tpusmi.tui.draw.prompt import FILTER, USER, Prompt
from tpusmi.tui.main.choosing import ChoosingPage
from tpusmi.tui.main.process_table import ProcessTable


class FilterPage(ChoosingPage):
    """A page whose processes are filtered."""

    prompt: Prompt
    table: ProcessTable

    def action_filter(self) -> None:
        """Type a filter."""
        self._type(self.table.filter, FILTER)

    def action_user(self) -> None:
        """Type the name of a user whose processes are shown."""
        self._type(user_of(self.table.filter), USER)

    def _type(self, text: str, label: str) -> None:
        self.show_processes()
        self.typing = True
        self.draw()
        self.prompt.start(text, label)

    def on_prompt_typed(self, message: Prompt.Typed) -> None:
        self.typing = not message.done
        text, before = message.text, self.table.filter
        self.table.filter = with_user(before, text) if message.label == USER else text
        self.draw()
