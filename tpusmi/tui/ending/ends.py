"""Ends under way: a thread for each, what it tells, and what became of the process."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from textual.message import Message

from tpusmi.actions.order import Order
from tpusmi.actions.outcome import Newcomer, Report, Result
from tpusmi.actions.plan import Plan
from tpusmi.model import Process, ProcessKey, Snapshot
from tpusmi.report import words
from tpusmi.report.ending import report_text
from tpusmi.tui.draw.look import Look, Row
from tpusmi.tui.feed import Ender

SHOWN_S = 15.0
"""How long the screen says what became of a process."""


class Question(NamedTuple):
    """What a person is asked, as it was when the key was pressed, whatever has changed since."""

    snapshot: Snapshot
    processes: tuple[Process, ...]
    """Those that were meant; which of them would be ended says the plan."""
    plan: Plan

    @property
    def pids(self) -> str:
        """`12`, or `12, 13`."""
        return ", ".join(str(p.pid) for p in self.processes)


def still_there(s: Snapshot, processes: Iterable[Process]) -> tuple[Process, ...]:
    """The processes as they are now, without those whose pid is another one's, or only claimed."""
    now = {p.pid: p for p in s.processes if not p.is_dead and p.is_verified}
    sure = (p for p in processes if p.is_verified)
    return tuple(now.get(p.pid, p) for p in sure if now.get(p.pid, p).key == p.key)


class Told(Message, namespace="end"):
    """What happens to processes that are being ended."""

    def __init__(self, words: Mapping[ProcessKey, str]) -> None:
        super().__init__()
        self.words = words


class Finished(Message, namespace="end"):
    """What became of them, or the error that stopped their end."""

    def __init__(self, question: Question, answer: Report | Exception) -> None:
        super().__init__()
        self.question, self.answer = question, answer


class Ending(threading.Thread):
    """Carries out one plan. A daemon, as the feed's reader is: to quit waits for no process."""

    def __init__(
        self, ender: Ender, question: Question, signal: int, post: Callable[[Message], object]
    ) -> None:
        super().__init__(name=f"tpusmi-end-{question.processes[0].pid}", daemon=True)
        self._ender, self._question, self._signal = ender, question, signal
        self._post = post
        self._told: Mapping[ProcessKey, str] = {}

    def begin(self) -> None:
        """Start; where no thread can be had, post that as what came of it."""
        try:
            self.start()
        except RuntimeError as error:
            self._post(Finished(self._question, error))

    def run(self) -> None:
        """Do it, and post what is told and what came of it."""
        asked = self._question
        try:
            answer: Report | Exception = self._ender.carry_out(
                asked.snapshot, asked.plan, Order(self._signal), self._say
            )
        except Exception as problem:  # noqa: BLE001  # shown, in place of the report
            answer = problem
        self._post(Finished(asked, answer))

    def _say(self, words: Mapping[ProcessKey, str]) -> None:
        """Ten times a second it is told the same."""
        if words != self._told:
            self._told = dict(words)
            self._post(Told(self._told))


class Ended(NamedTuple):
    """What became of a process, in words, and whether the chips are free of it."""

    text: str
    good: bool


class Ends:
    """What is said of the processes that are being ended, or were just now."""

    def __init__(self) -> None:
        self.telling: dict[ProcessKey, str] = {}
        """How far each is."""
        self._outcomes: dict[ProcessKey, Ended] = {}

    def finish(self, finished: Finished) -> Mapping[ProcessKey, Ended]:
        """Keep what became of each, which is returned, in place of how far it is."""
        question, answer = finished.question, finished.answer
        for p in question.processes:
            self.telling.pop(p.key, None)
        outcomes = _outcomes(question, answer)
        for key, outcome in outcomes.items():
            # The newest is the last.
            self._outcomes.pop(key, None)
            self._outcomes[key] = outcome
        return outcomes

    def forget(self, outcomes: Mapping[ProcessKey, Ended]) -> None:
        """Say them no more, those excepted of which something else is said by now."""
        for key, outcome in outcomes.items():
            if self._outcomes.get(key) is outcome:
                del self._outcomes[key]

    def lines(self, look: Look, width: int) -> list[Row]:
        """What became of each, newest first and whole: the reason is at a sentence's end."""
        lines = []
        for text, good in reversed(self._outcomes.values()):
            mark, style = (look.glyphs.dot, "good") if good else ("!", "bad")
            lines += look.wrapped(text, width, style, f"{mark} ")
        return lines


def _outcomes(question: Question, answer: Report | Exception) -> Mapping[ProcessKey, Ended]:
    if isinstance(answer, Exception):
        text = f"pid {question.pids}: could not be ended: {answer!r}"
        return {question.processes[0].key: Ended(text, False)}
    # The newest line is the first: what is said of all of them comes last.
    return {r.process.key: _ended(answer, r) for r in reversed(answer.results)}


def _ended(answer: Report, result: Result) -> Ended:
    """What became of one of them; beside the first one what is to be said of all."""
    is_first = result is answer.results[0]
    # Of one that does not end it goes without saying that it holds its nodes.
    alive = {r.process.pid for r in answer.results if not r.is_free}
    held: dict[tuple[int, ...], list[str]] = {}
    for node, pids in answer.still_held.items():
        whose = next((r for r in answer.results if node in r.process.holds), answer.results[0])
        others = tuple(pid for pid in pids if pid not in alive)
        if whose is result and (others or not pids):
            held.setdefault(others, []).append(node)
    part = answer._replace(
        results=(result,),
        still_held={words.nodes(nodes): pids for pids, nodes in held.items()},
        lock_files=answer.lock_files if is_first else (),
        notes=answer.notes if is_first else (),
        unseen=answer.unseen if is_first else "",
        came_back=tuple(n for n in answer.came_back if _is_said_of(result, n, is_first)),
    )
    return Ended("; ".join(report_text(part).splitlines()), part.is_free is not False)


def _is_said_of(result: Result, newcomer: Newcomer, is_first: bool) -> bool:
    """Beside which process it is said that another one took its nodes."""
    return newcomer.replaces in (result.process.pid, *((None,) if is_first else ()))
