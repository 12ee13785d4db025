"""What the kill dialog says of a process and of what would be done to it. Pure."""

from __future__ import annotations

import signal
from collections.abc import Iterator, Mapping

from tpusmi.actions.order import Order
from tpusmi.model import Process, ProcessKey
from tpusmi.report import verdicts, words
from tpusmi.report.ending import may_come_back, standstill, what_happens
from tpusmi.report.holding import chips_or_nodes
from tpusmi.text import noun
from tpusmi.tui.draw.look import SIMULATED, Look, Row, split
from tpusmi.tui.ending.ends import Question
from tpusmi.tui.process.process_facts import verdict_style

COMMAND_LINES = 4
_NAME_WIDTH = 9
_AFTER_KILL = (
    "After SIGKILL the next job may fail to start: the kernel needs time to release the chips."
)


class Text:
    """Lines about one question, at most `width` columns wide."""

    def __init__(
        self, look: Look, question: Question, user: str, telling: Mapping[ProcessKey, str]
    ) -> None:
        self._look, self._question, self._user, self._telling = look, question, user, telling

    def about(self, width: int) -> list[Row]:
        """Who it is, what it holds, and what speaks for or against its end."""
        (p,) = self._question.processes
        name = f"pid {p.pid} ({p.user or words.UNKNOWN})"
        ended = bool(self._question.plan.targets)
        lines = [self._title(f"End {name}?" if ended else f"{name} is left alone")]
        lines += self._command(p, width)
        for why in self._refusals():
            lines += self._look.wrapped(f"It {why}.", width, "bad")
        lines.append(())
        for label, text, style in self._facts(p):
            lines += self._labelled(label, text, style, width)
        return lines

    def _title(self, title: str) -> Row:
        simulation = (SIMULATED if self._question.snapshot.simulated else "", "loud")
        return self._look.line((title, "title"), ("  ", "plain"), simulation)

    def _labelled(self, label: str, text: str, style: str, width: int) -> list[Row]:
        """The text in lines of that width, its name before the first."""
        first, *more = self._look.wrapped(text, width - _NAME_WIDTH, style)
        indent = self._look.line((" " * _NAME_WIDTH, "plain"))
        title = self._look.line((label.ljust(_NAME_WIDTH), "title"))
        return [(*title, *first), *((*indent, *rest) for rest in more)]

    def consequence(self, number: int | None, width: int) -> list[Row]:
        """What happens with that signal; None is no signal at all."""
        if number is None:
            return self._look.wrapped("Nothing is done.", width, "plain")
        lines = self._look.wrapped(f"{what_happens(Order(number))}.", width, "plain")
        for path in self._question.plan.lock_files:
            text = f"{path} is removed if no process holds the TPU then: it is in the way."
            lines += self._look.wrapped(text, width, "plain")
        if number == signal.SIGKILL:
            lines += self._look.wrapped(_AFTER_KILL, width, "warn")
        return lines

    def _refusals(self) -> list[str]:
        plan = self._question.plan
        if plan.targets:
            return []
        return [refused.why for refused in plan.refused] or ["is nothing that could be ended"]

    def _command(self, p: Process, width: int) -> list[Row]:
        lines = split(p.command or words.UNKNOWN, width)
        if len(lines) > COMMAND_LINES:
            cut = self._look.fitted(" ".join(lines[COMMAND_LINES - 1 :]), max(width, 1))
            lines = [*lines[: COMMAND_LINES - 1], cut]
        return [self._look.line((line, "bold")) for line in lines]

    def _facts(self, p: Process) -> Iterator[tuple[str, str, str]]:
        """Name, value and style of each."""
        yield (
            "user",
            self._whose(p) or p.user or words.UNKNOWN,
            "warn" if self._whose(p) else "plain",
        )
        yield "holds", self._holds(p), "plain"
        if shared := self._shared():
            yield "shared", shared, "warn"
        if (state := standstill(p)) and state not in verdicts.everything(p):
            yield "state", state, "warn"
        if again := self._starter(p):
            yield "after", again, "warn"
        yield "age", words.duration(None if p.life is None else p.life.age_s), "plain"
        yield "verdict", verdicts.sentence(p) or words.UNKNOWN, verdict_style(p)
        if signs := verdicts.other_signs(p):
            yield "signs", "; ".join(signs), "plain"
        if p.key in self._telling:
            yield "ending", self._telling[p.key], "warn"

    def _whose(self, p: Process) -> str:
        """A warning about another user's, by their uids; empty for one's own."""
        if p.uid in self._question.plan.uids:
            return ""
        if p.uid is None:
            name = p.user or words.UNKNOWN
            return f"{name}: perhaps another user's process, you are {self._user}"
        return f"{p.user or p.uid}: another user's process, you are {self._user}"

    def _starter(self, p: Process) -> str:
        """What may start it again; empty where nothing is known to."""
        found = next((t.starter for t in self._question.plan.targets if t.process == p), None)
        return "" if found is None else may_come_back(found)

    def _shared(self) -> str:
        """Which others hold the chips to be freed; empty for none."""
        others = self._question.plan.also_held_by
        pids, hold = ", ".join(map(str, others)), noun(len(others), "holds", "hold")
        return f"pid {pids} also {hold} them: the chips will not be free" if others else ""

    def _holds(self, p: Process) -> str:
        if not p.holds:
            return words.UNKNOWN
        nodes, found = words.nodes(p.holds), chips_or_nodes(self._question.snapshot, p)
        return nodes if found == nodes else f"{found}: {nodes}"
