"""The text of the kill dialog: about one process or several, and what would be done. Pure."""

from __future__ import annotations

import signal
from collections.abc import Iterator, Mapping

from rich.cells import cell_len

from tpusmi.actions.end import Order
from tpusmi.model import UNJUDGED, Process, ProcessKey
from tpusmi.report import verdicts, words
from tpusmi.report.kill_text import may_come_back, standstill, what_happens
from tpusmi.report.ps_text import chips_or_nodes
from tpusmi.text import counted, noun
from tpusmi.tui.draw.look import SIMULATED, Look, Row, split
from tpusmi.tui.ending.ends import Question
from tpusmi.tui.process.process_facts import verdict_style

COMMAND_LINES = 4
_NAME_WIDTH = 9
_INDENT = "    "
_NOT_STALE = "Not certainly stale"
_AFTER_KILL = (
    "After SIGKILL the next job may fail to start: the kernel needs time to release the chips."
)


def text_about(
    look: Look, question: Question, user: str, progress: Mapping[ProcessKey, str]
) -> Text:
    """The text of the dialog for that question."""
    kind = Text if len(question.processes) == 1 else TextOfSeveral
    return kind(look, question, user, progress)


class Text:
    """Lines about one process, at most `width` columns wide."""

    def __init__(
        self, look: Look, question: Question, user: str, progress: Mapping[ProcessKey, str]
    ) -> None:
        self._look, self._question, self._user, self._progress = look, question, user, progress

    def about(self, width: int) -> list[Row]:
        """Which process it is, what it holds, and reasons for and against its end."""
        (p,) = self._question.processes
        name = f"pid {p.pid} ({p.user or words.UNKNOWN})"
        ended = bool(self._question.plan.targets)
        lines = [self._title(f"End {name}?" if ended else f"{name} is left alone")]
        lines += self._command(p, width)
        if not ended:
            for why in [r.why for r in self._question.plan.refused] or ["cannot be ended"]:
                lines += self._look.wrapped(f"It {why}.", width, "bad")
        lines.append(())
        for label, text, style in self._facts(p):
            lines += self._labelled(label, text, style, width)
        return lines

    def _title(self, title: str) -> Row:
        simulation = (SIMULATED if self._question.snapshot.simulated else "", "loud")
        return self._look.line((title, "title"), ("  ", "plain"), simulation)

    def _labelled(self, label: str, text: str, style: str, width: int) -> list[Row]:
        """The text in lines of that width, its label before the first."""
        first, *more = self._look.wrapped(text, width - _NAME_WIDTH, style)
        indent = self._look.line((" " * _NAME_WIDTH, "plain"))
        title = self._look.line((label.ljust(_NAME_WIDTH), "title"))
        return [(*title, *first), *((*indent, *rest) for rest in more)]

    def consequence(self, number: int | None, width: int) -> list[Row]:
        """What happens with that signal; without a signal for None."""
        if number is None:
            text = "Nothing is done."
            if not self._question.is_of_stale:
                text += f" {_NOT_STALE}: Enter ends a process only after t, i or k."
            return self._look.wrapped(text, width, "plain")
        lines = self._look.wrapped(f"{what_happens(Order(number))}.", width, "plain")
        for path in self._question.plan.lock_files:
            text = f"{path} is removed if no process then holds the TPU: it is in the way."
            lines += self._look.wrapped(text, width, "plain")
        if number == signal.SIGKILL:
            lines += self._look.wrapped(_AFTER_KILL, width, "warn")
        return lines

    def _command(self, p: Process, width: int) -> list[Row]:
        lines = split(p.command or words.UNKNOWN, width)
        if len(lines) > COMMAND_LINES:
            cut = self._look.fitted(" ".join(lines[COMMAND_LINES - 1 :]), max(width, 1))
            lines = [*lines[: COMMAND_LINES - 1], cut]
        return [self._look.line((line, "bold")) for line in lines]

    def _facts(self, p: Process) -> Iterator[tuple[str, str, str]]:
        """Label, text and style of each fact."""
        warning = self._other_user(p)
        yield "user", warning or p.user or words.UNKNOWN, "warn" if warning else "plain"
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
        if p.key in self._progress:
            yield "ending", self._progress[p.key], "warn"

    def _other_user(self, p: Process) -> str:
        """A warning about another user's process, by uid; empty for one's own."""
        if p.uid in self._question.plan.uids:
            return ""
        if p.uid is None:
            name = p.user or words.UNKNOWN
            return f"{name}: perhaps another user's process, you are {self._user}"
        return f"{p.user or p.uid}: another user's process, you are {self._user}"

    def _starter(self, p: Process) -> str:
        """What may start it again; empty where nothing is known to."""
        starter = next((t.starter for t in self._question.plan.targets if t.process == p), None)
        return "" if starter is None else may_come_back(starter)

    def _shared(self) -> str:
        """Which other processes hold the chips to be freed; empty for none."""
        others = self._question.plan.also_held_by
        pids, hold = ", ".join(map(str, others)), noun(len(others), "holds", "hold")
        return f"pid {pids} also {hold} them: the chips will not be free" if others else ""

    def _holds(self, p: Process) -> str:
        if not p.holds:
            return words.UNKNOWN
        nodes, held = words.nodes(p.holds), chips_or_nodes(self._question.snapshot, p)
        return nodes if held == nodes else f"{held}: {nodes}"


class TextOfSeveral(Text):
    """A list of the processes that would be ended, then of those left alone, with the reasons."""

    def about(self, width: int) -> list[Row]:
        """Each process: what it holds, and reasons for or against its end."""
        plan, processes = self._question.plan, self._question.processes
        targets = {t.process.key for t in plan.targets}
        count = len(processes)
        title = f"End {counted(len(targets), 'process', 'processes')}?"
        if not targets:
            these = "This process is" if count == 1 else f"These {count} processes are"
            title = f"{these} left alone"
        elif len(targets) < count:
            left = count - len(targets)
            title += f" {left} of {count} {noun(left, 'is', 'are')} left alone"
        lines = [self._title(title)]
        for p in processes:
            if p.key in targets:
                lines += self._one(p, self._reasons(p), verdict_style(p), width)
        for p in processes:
            if p.key not in targets:
                why = next((r.why for r in plan.refused if r.pid == p.pid), "cannot be ended")
                lines += self._one(p, f"Left alone: it {why}.", "warn", width)
        if shared := self._shared():
            lines += [(), *self._look.wrapped(f"{shared[0].upper()}{shared[1:]}.", width, "warn")]
        return lines

    def _one(self, p: Process, reason: str, style: str, width: int) -> list[Row]:
        """`pid 12 (ann)  chips 0-3  3h05m  python train.py`, and the reason under it."""
        head = self._look.line((f"pid {p.pid} ({p.user or words.UNKNOWN})", "title"))
        facts = self._look.line((f"  {'  '.join(self._details(p))}", "plain"))
        command = words.command(p.command) or words.UNKNOWN
        reasons = self._look.wrapped(reason, width - len(_INDENT), style)
        inner = [
            self._look.cell(command, max(0, min(width - len(_INDENT), cell_len(command))), "bold")
        ]
        indent = self._look.line((_INDENT, "plain"))
        return [(), (*head, *facts), *((*indent, *line) for line in (*inner, *reasons))]

    def _details(self, p: Process) -> Iterator[str]:
        yield chips_or_nodes(self._question.snapshot, p) if p.holds else "holds no TPU"
        if p.life is not None and p.life.age_s is not None:
            yield f"{words.elapsed(p.life.age_s)} old"

    def _reasons(self, p: Process) -> str:
        verdict, state = verdicts.sentence(p), standstill(p)
        state = "" if state in verdict else state
        parts = (verdict, state, self._other_user(p), self._starter(p), self._progress.get(p.key))
        return "; ".join(text for text in parts if text) or UNJUDGED
