"""What the kill dialog says of a process and of what would be done to it. Pure."""

from __future__ import annotations

import signal
from collections.abc import Iterator

from tpusmi.actions.end import Order
from tpusmi.model import Process
from tpusmi.report import words
from tpusmi.report.ending import what_happens
from tpusmi.report.holding import chips
from tpusmi.tui.chrome import SIMULATED
from tpusmi.tui.ends import Question
from tpusmi.tui.look import Look, Row, split
from tpusmi.tui.processes import verdict

COMMAND_LINES = 4
_NAME_WIDTH = 9
_AFTER_KILL = (
    "After SIGKILL the next job may fail to start: the kernel needs time to release the chips."
)


class Text:
    """Lines about one question, at most `width` columns wide."""

    def __init__(self, look: Look, question: Question, user: str, telling: str | None) -> None:
        self._look, self._question, self._user, self._telling = look, question, user, telling

    def about(self, width: int) -> list[Row]:
        """Who it is, what it holds, and what speaks for or against its end."""
        p, simulated = self._question.process, self._question.snapshot.simulated
        name = f"pid {p.pid} ({p.user or words.UNKNOWN})"
        ended = bool(self._question.plan.targets)
        title = f"End {name}?" if ended else f"{name} is left alone"
        simulation = (SIMULATED if simulated else "", "loud")
        lines = [self._look.line((title, "title"), ("  ", "plain"), simulation)]
        lines += self._command(width)
        for why in self._refusals():
            lines += self._look.wrapped(f"It {why}.", width, "bad")
        lines.append(())
        for label, text, style in self._facts(p):
            first, *more = self._look.wrapped(text, width - _NAME_WIDTH, style)
            lines.append((*self._look.line((label.ljust(_NAME_WIDTH), "title")), *first))
            indent = self._look.line((" " * _NAME_WIDTH, "plain"))
            lines += [(*indent, *rest) for rest in more]
        return lines

    def consequence(self, number: int | None, width: int) -> list[Row]:
        """What happens with that signal; None is no signal at all."""
        if number is None:
            return self._look.wrapped("Nothing is done.", width, "plain")
        lines = self._look.wrapped(f"{what_happens(Order(number))}.", width, "plain")
        for path in self._question.plan.lock_files:
            text = f"{path} is removed then, if nobody holds the TPU: it is in the way."
            lines += self._look.wrapped(text, width, "plain")
        if number == signal.SIGKILL:
            lines += self._look.wrapped(_AFTER_KILL, width, "warn")
        return lines

    def _refusals(self) -> list[str]:
        plan = self._question.plan
        if plan.targets:
            return []
        return [refused.why for refused in plan.refused] or ["is nothing that could be ended"]

    def _command(self, width: int) -> list[Row]:
        lines = split(self._question.process.command or words.UNKNOWN, width)
        if len(lines) > COMMAND_LINES:
            cut = self._look.fitted(" ".join(lines[COMMAND_LINES - 1 :]), max(width, 1))
            lines = [*lines[: COMMAND_LINES - 1], cut]
        return [self._look.line((line, "bold")) for line in lines]

    def _facts(self, p: Process) -> Iterator[tuple[str, str, str]]:
        """Name, value and style of each."""
        others = self._question.plan.also_held_by
        whose = p.user or words.UNKNOWN
        is_others = p.user is not None and p.user != self._user
        yield (
            "user",
            f"{whose}: another user's process, you are {self._user}" if is_others else whose,
            "warn" if is_others else "plain",
        )
        yield "holds", self._holds(p), "plain"
        if others:
            pids = ", ".join(map(str, others))
            holds = "holds" if len(others) == 1 else "hold"
            yield "shared", f"pid {pids} {holds} them, too: the chips will not be free", "warn"
        yield "age", words.duration(None if p.life is None else p.life.age_s), "plain"
        yield "verdict", verdict(p) or words.UNKNOWN, "bad" if p.stale else "plain"
        if self._telling is not None:
            yield "ending", self._telling, "warn"

    def _holds(self, p: Process) -> str:
        if not p.holds:
            return words.UNKNOWN
        nodes, numbers = words.nodes(p.holds), chips(self._question.snapshot, p)
        known = any(set(c.nodes) & set(p.holds) for c in self._question.snapshot.chips)
        plural = "s" if len(set(numbers) & {"-", ","}) else ""
        return f"chip{plural} {numbers}: {nodes}" if known else nodes
