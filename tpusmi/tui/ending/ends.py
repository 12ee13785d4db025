"""Ends that are running: a thread for each, its progress, and what became of the processes."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from textual.message import Message

from tpusmi.model import Host, Process, ProcessKey, Snapshot
from tpusmi.report import words
from tpusmi.tui.draw.look import Look, Row
from tpusmi.tui.feed import Options

if TYPE_CHECKING:
    from tpusmi.actions.outcome import Newcomer, Report, Result
    from tpusmi.actions.plan import Plan
    from tpusmi.tui.feed import CarryOut

SHOWN_S = 15.0
"""How long the screen shows what became of a process."""


class Question(NamedTuple):
    """What the dialog asks about, as it was when the key was pressed."""

    host: Host
    snapshot: Snapshot
    processes: tuple[Process, ...]
    """The processes that were chosen; the plan says which of them would be ended."""
    plan: Plan

    @property
    def pids(self) -> str:
        """`12`, or `12, 13`."""
        return ", ".join(str(p.pid) for p in self.processes)

    @property
    def is_of_stale(self) -> bool:
        """True if it would end processes, and each of them is certainly stale."""
        targets = self.plan.targets
        return bool(targets) and all(t.process.is_stale for t in targets)

    @property
    def needless(self) -> str:
        """Why there is nothing to ask, in a sentence: the processes are seen to hold no TPU. Empty
        where there is.
        """
        plan = self.plan
        if plan.targets or plan.blind or any(p.holds for p in self.processes):
            return ""
        why = {r.pid: r.why for r in plan.refused}
        whys = dict.fromkeys(why.get(p.pid, "cannot be ended") for p in self.processes)
        text = f"pid {self.pids} {' / '.join(whys)}"
        if any(r.nodes for r in plan.refused) or not all("hold" in w for w in whys):
            return text
        pids = " ".join(str(p.pid) for p in self.processes)
        return (
            f"{text}: `kill {pids}` in a shell ends {'it' if len(self.processes) == 1 else 'them'}"
        )


def question(
    host: Host, options: Options, snapshot: Snapshot, processes: tuple[Process, ...]
) -> Question:
    """The question whether to end those processes, of other users as well: it names the user."""
    from tpusmi.actions.plan import Request
    from tpusmi.actions.planning import planned

    request = Request(tuple(p.pid for p in processes), all_users=True)
    planner = options.planner or planned
    return Question(host, snapshot, processes, plan=planner(host, snapshot, request))


def still_there(s: Snapshot, processes: Iterable[Process]) -> tuple[Process, ...]:
    """The processes as they are now, without those whose pid was reused or is only claimed."""
    now = {p.pid: p for p in s.processes if not p.is_dead and p.is_verified}
    sure = (p for p in processes if p.is_verified)
    return tuple(now.get(p.pid, p) for p in sure if now.get(p.pid, p).key == p.key)


@dataclass
class Progress(Message, namespace="end"):
    """What is happening to processes that are being ended."""

    words: Mapping[ProcessKey, str]


@dataclass
class Finished(Message, namespace="end"):
    """What became of the processes, or the error that stopped their end."""

    question: Question
    result: Report | Exception


class EndThread(threading.Thread):
    """Carries out one plan. A daemon, as the feed's reader is: quitting waits for no process."""

    def __init__(
        self,
        question: Question,
        carry_out: CarryOut | None,
        signal: int,
        post: Callable[[Message], object],
    ) -> None:
        from tpusmi.actions import end

        super().__init__(name=f"tpusmi-end-{question.processes[0].pid}", daemon=True)
        self._question, self._order = question, end.Order(signal)
        self._carry_out = carry_out or end.carry_out
        self._post = post
        self._words: Mapping[ProcessKey, str] = {}

    def begin(self) -> None:
        """Start; if no thread can be started, post that as the result."""
        try:
            self.start()
        except RuntimeError as error:
            self._post(Finished(self._question, error))

    def run(self) -> None:
        """Do the work, and post its progress and its result."""
        q = self._question
        try:
            result: Report | Exception = self._carry_out(
                q.host, q.snapshot.chips, q.plan, self._order, self._on_progress
            )
        except Exception as error:  # noqa: BLE001  # shown, in place of the report
            result = error
        self._post(Finished(q, result))

    def _on_progress(self, words: Mapping[ProcessKey, str]) -> None:
        """Post what has changed: the same comes ten times a second."""
        if words != self._words:
            self._words = dict(words)
            self._post(Progress(self._words))


class EndedLine(NamedTuple):
    """What became of a process, in words, and whether the chips are free of it."""

    text: str
    good: bool


class Ends:
    """What the screen shows about processes that are being ended, or have just been."""

    def __init__(self) -> None:
        self.progress: dict[ProcessKey, str] = {}
        """How far the end of each process is, in words."""
        self._outcomes: dict[ProcessKey, EndedLine] = {}

    def finish(self, finished: Finished) -> Mapping[ProcessKey, EndedLine]:
        """Replace the progress of each process by what became of it, which is returned."""
        for p in finished.question.processes:
            self.progress.pop(p.key, None)
        outcomes = _outcomes(finished.question, finished.result)
        for key, outcome in outcomes.items():
            self._outcomes.pop(key, None)  # so that the newest is the last
            self._outcomes[key] = outcome
        return outcomes

    def forget(self, outcomes: Mapping[ProcessKey, EndedLine]) -> None:
        """Stop showing these outcomes, except those that a newer one has replaced."""
        for key, outcome in outcomes.items():
            if self._outcomes.get(key) is outcome:
                del self._outcomes[key]

    def lines(self, look: Look, width: int) -> list[Row]:
        """What became of each, newest first and in full: the reason is at the end of a sentence."""
        lines = []
        for text, good in reversed(self._outcomes.values()):
            mark, style = (look.glyphs.dot, "good") if good else ("!", "bad")
            lines += look.wrapped(text, width, style, f"{mark} ")
        return lines


def _outcomes(question: Question, result: Report | Exception) -> Mapping[ProcessKey, EndedLine]:
    if isinstance(result, Exception):
        text = f"pid {question.pids}: could not be ended: {result!r}"
        return {question.processes[0].key: EndedLine(text, False)}
    # The newest line is shown first: the one about all of them comes last.
    return {r.process.key: _ended(result, r) for r in reversed(result.results)}


def _ended(report: Report, result: Result) -> EndedLine:
    """What became of one process; the first one's line also has what concerns all."""
    from tpusmi.report.kill_text import report_text

    is_first = result is report.results[0]
    # A process that does not end holds its nodes: its own line says so already.
    alive = {r.process.pid for r in report.results if not r.is_free}
    held: dict[tuple[int, ...], list[str]] = {}
    for node, pids in report.still_held.items():
        whose = next((r for r in report.results if node in r.process.holds), report.results[0])
        others = tuple(pid for pid in pids if pid not in alive)
        if whose is result and (others or not pids):
            held.setdefault(others, []).append(node)
    part = report._replace(
        results=(result,),
        still_held={words.nodes(nodes): pids for pids, nodes in held.items()},
        lock_files=report.lock_files if is_first else (),
        notes=report.notes if is_first else (),
        unseen=report.unseen if is_first else "",
        came_back=tuple(n for n in report.came_back if _belongs_to(result, n, is_first)),
    )
    return EndedLine("; ".join(report_text(part).splitlines()), part.is_free is not False)


def _belongs_to(result: Result, newcomer: Newcomer, is_first: bool) -> bool:
    """True if the line of that process says that the newcomer took its nodes."""
    return newcomer.replaces in (result.process.pid, *((None,) if is_first else ()))
