"""What the user types on the main page: a filter, the letter of a column to sort by, and whether to
forget ended jobs.
"""

from __future__ import annotations

import os
from collections.abc import Callable

from tpusmi.model import Host
from tpusmi.report.columns import SORT_LETTERS
from tpusmi.report.filters import user_of, with_user
from tpusmi.tui.draw.look import Look, Row, width_of
from tpusmi.tui.draw.prompt import FILTER, USER, Prompt
from tpusmi.tui.ending.forgetting import Done, ForgetThread
from tpusmi.tui.main.choosing import ChoosingPage
from tpusmi.tui.main.process_table import ProcessTable


class PromptingPage(ChoosingPage):
    """A page with a table of processes, and a line for what the user types about them."""

    prompt: Prompt
    table: ProcessTable
    _take_answer: Callable[[str], None]
    """What to do with the key that answers the open question; it is empty for Esc."""

    def action_filter(self) -> None:
        """Type a filter."""
        self._type(self.table.filter, FILTER)

    def action_user(self) -> None:
        """Type the name of a user whose processes are shown."""
        self._type(user_of(self.table.filter), USER)

    def action_order(self) -> None:
        """Sort by the column of the next key."""
        self._take_answer = self._sort_by
        self.prompt.ask_order(SORT_LETTERS)
        self._open()

    def action_forget(self) -> None:
        """Ask whether to forget ended jobs."""
        host, s = self.scene.options.host, self.scene.newest
        if host is None or s is None:
            return
        users = {p.uid for p in s.processes if p.is_dead}
        if not users:
            self.app.say("No job here has ended")  # type: ignore[attr-defined]
            return
        of_all = os.geteuid() == 0 and users != {0}
        question = _whether_to_forget(self.look, of_all, self.size.width)
        self._ask(question, lambda answer: self._forget(host) if answer == "y" else None)

    def _sort_by(self, letter: str) -> None:
        if letter and not self.table.sorting.choose_letter(letter):
            self.app.say(f"No column has the letter {letter!r}")  # type: ignore[attr-defined]

    def _forget(self, host: Host) -> None:
        ForgetThread(host, self.post_message).begin()

    def on_forget_done(self, message: Done) -> None:
        self.app.say(message.text)  # type: ignore[attr-defined]
        self.app.action_again()  # type: ignore[attr-defined]

    # -- the line

    def _type(self, text: str, label: str) -> None:
        self._open()
        self.prompt.start(text, label)

    def _ask(self, question: Row, take_answer: Callable[[str], None]) -> None:
        self._take_answer = take_answer
        self._open()
        self.prompt.ask(question)

    def _open(self) -> None:
        self.show_processes()
        self.typing = True
        self.draw()

    def on_prompt_typed(self, message: Prompt.Typed) -> None:
        self.typing = not message.done
        text, before = message.text, self.table.filter
        self.table.filter = with_user(before, text) if message.label == USER else text
        self.draw()

    def on_prompt_answered(self, message: Prompt.Answered) -> None:
        self.typing = False
        self._take_answer(message.key)
        self.draw()


def _whether_to_forget(look: Look, of_all: bool, width: int) -> Row:
    """The question; with its answers first where it does not fit."""
    whose = " of all users" if of_all else ""
    question = look.line(
        (f"Forget the ended jobs{whose} and remove what they left? ", "title"),
        ("y", "key"),
        (" yes  ", "plain"),
        ("any other key: no", "dim"),
    )
    if width_of(question) <= width:
        return question
    short = f": forget ended jobs{', all users' if of_all else ''}  "
    return look.line(("y", "key"), (short, "title"), ("n: no", "dim"))
