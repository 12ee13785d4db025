"""Ends under way: a thread for each, what it tells, and what became of the process."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import NamedTuple

from textual.message import Message

from tpusmi.actions.end import Order, Report
from tpusmi.actions.plan import Plan
from tpusmi.model import Process, ProcessKey, Snapshot
from tpusmi.report import words
from tpusmi.report.ending import report_text
from tpusmi.tui.feed import Ender
from tpusmi.tui.look import Look, Row

SHOWN_S = 15.0
"""How long the screen says what became of a process."""


class Question(NamedTuple):
    """What a person is asked, as it was when the key was pressed, whatever has changed since."""

    snapshot: Snapshot
    process: Process
    plan: Plan


class Told(Message, namespace="end"):
    """What happens to a process that is being ended."""

    def __init__(self, words: Mapping[ProcessKey, str]) -> None:
        super().__init__()
        self.words = words


class Finished(Message, namespace="end"):
    """What became of it, or the error that stopped its end."""

    def __init__(self, process: Process, answer: Report | Exception) -> None:
        super().__init__()
        self.process = process
        self.answer = answer


class Ending(threading.Thread):
    """Carries out one plan. A daemon, as the feed's reader is: to quit waits for no process."""

    def __init__(
        self, ender: Ender, question: Question, signal: int, post: Callable[[Message], object]
    ) -> None:
        super().__init__(name=f"tpusmi-end-{question.process.pid}", daemon=True)
        self._ender, self._question, self._signal = ender, question, signal
        self._post = post
        self._told: Mapping[ProcessKey, str] = {}

    def run(self) -> None:
        """Do it, and post what is told and what came of it."""
        asked = self._question
        try:
            answer: Report | Exception = self._ender.carry_out(
                asked.snapshot, asked.plan, Order(self._signal), self._say
            )
        except Exception as problem:  # noqa: BLE001  # shown, in place of the report
            answer = problem
        self._post(Finished(asked.process, answer))

    def _say(self, words: Mapping[ProcessKey, str]) -> None:
        """Ten times a second it is told the same."""
        if words != self._told:
            self._told = dict(words)
            self._post(Told(self._told))


class Ended(NamedTuple):
    """What became of one process, in words, and whether the chips are free of it."""

    text: str
    good: bool


class Ends:
    """What is said of the processes that are being ended, or were just now."""

    def __init__(self) -> None:
        self.telling: dict[ProcessKey, str] = {}
        """How far each is."""
        self._outcomes: dict[ProcessKey, Ended] = {}

    def finish(self, process: Process, answer: Report | Exception) -> Ended:
        """Keep what became of it, which is returned, in place of how far it is."""
        self.telling.pop(process.key, None)
        # The newest is the last.
        self._outcomes.pop(process.key, None)
        outcome = self._outcomes[process.key] = _outcome(process, answer)
        return outcome

    def forget(self, process: ProcessKey, outcome: Ended) -> None:
        """Say it no more, unless it is another one by now."""
        if self._outcomes.get(process) is outcome:
            del self._outcomes[process]

    def lines(self, look: Look, width: int) -> list[Row]:
        """What became of each, newest first and whole: the reason is at a sentence's end."""
        lines = []
        for text, good in reversed(self._outcomes.values()):
            mark, style = (look.glyphs.dot, "good") if good else ("!", "bad")
            lines += look.wrapped(text, width, style, f"{mark} ")
        return lines


def _outcome(process: Process, answer: Report | Exception) -> Ended:
    if isinstance(answer, Exception):
        return Ended(f"pid {process.pid}: could not be ended: {answer!r}", False)
    # Of one that does not end it goes without saying that it holds its nodes.
    alive = {r.process.pid for r in answer.results if not r.is_free}
    held: dict[tuple[int, ...], list[str]] = {}
    for node, pids in answer.still_held.items():
        if others := tuple(pid for pid in pids if pid not in alive):
            held.setdefault(others, []).append(node)
    short = answer._replace(still_held={words.nodes(nodes): pids for pids, nodes in held.items()})
    return Ended("; ".join(report_text(short).splitlines()), answer.is_free is not False)
