"""What the kill dialog says of several processes at once. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from rich.cells import cell_len

from tpusmi.model import Process, ProcessKey
from tpusmi.report import verdicts, words
from tpusmi.report.ending import standstill
from tpusmi.report.holding import chips_or_nodes
from tpusmi.text import counted, noun
from tpusmi.tui.draw.look import Look, Row
from tpusmi.tui.ending.ends import Question
from tpusmi.tui.ending.question import Text
from tpusmi.tui.process.process_facts import verdict_style

_INDENT = "    "


def text_about(
    look: Look, question: Question, user: str, telling: Mapping[ProcessKey, str]
) -> Text:
    """What is said of the processes of that question."""
    kind = Text if len(question.processes) == 1 else TextOfSeveral
    return kind(look, question, user, telling)


class TextOfSeveral(Text):
    """A list of those that would be ended, then of those that are left alone, with the reasons."""

    def about(self, width: int) -> list[Row]:
        """Each of them: who it is, what it holds, what speaks for or against its end."""
        plan, asked = self._question.plan, self._question.processes
        targets = {t.process.key for t in plan.targets}
        count = len(asked)
        title = f"End {counted(len(targets), 'process', 'processes')}?"
        if not targets:
            these = "This process is" if count == 1 else f"These {count} processes are"
            title = f"{these} left alone"
        elif len(targets) < count:
            left = count - len(targets)
            title += f" {left} of {count} {noun(left, 'is', 'are')} left alone"
        lines = [self._title(title)]
        for p in asked:
            if p.key in targets:
                lines += self._one(p, self._speaks(p), verdict_style(p), width)
        for p in asked:
            if p.key not in targets:
                lines += self._one(p, f"Left alone: it {self._why_not(p)}.", "warn", width)
        if shared := self._shared():
            lines += [(), *self._look.wrapped(f"{shared[0].upper()}{shared[1:]}.", width, "warn")]
        return lines

    def _one(self, p: Process, reason: str, style: str, width: int) -> list[Row]:
        """`pid 12 (ann)  chips 0-3  3h05m  python train.py`, and the reason under it."""
        head = self._look.line((f"pid {p.pid} ({p.user or words.UNKNOWN})", "title"))
        facts = self._look.line((f"  {'  '.join(self._details(p))}", "plain"))
        command = words.command(p.command) or words.UNKNOWN
        told = self._look.wrapped(reason, width - len(_INDENT), style)
        inner = [
            self._look.cell(command, max(0, min(width - len(_INDENT), cell_len(command))), "bold")
        ]
        indent = self._look.line((_INDENT, "plain"))
        return [(), (*head, *facts), *((*indent, *line) for line in (*inner, *told))]

    def _details(self, p: Process) -> Iterator[str]:
        yield chips_or_nodes(self._question.snapshot, p) if p.holds else "holds no TPU"
        if p.life is not None and p.life.age_s is not None:
            yield f"{words.elapsed(p.life.age_s)} old"

    def _speaks(self, p: Process) -> str:
        verdict, state = verdicts.sentence(p), standstill(p)
        said = [
            *(verdict, "" if state in verdict else state, self._whose(p), self._starter(p)),
            self._telling.get(p.key, ""),
        ]
        return "; ".join(text for text in said if text) or "not stale, as far as is known"

    def _why_not(self, p: Process) -> str:
        refused = (r.why for r in self._question.plan.refused if r.pid == p.pid)
        return next(refused, "is nothing that could be ended")
