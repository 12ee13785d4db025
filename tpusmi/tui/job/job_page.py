"""The job page: one process, its steps, compilations and phases over the last minutes."""

from __future__ import annotations

from collections.abc import Iterable

from tpusmi.model import Snapshot
from tpusmi.tui.draw.graphs import Drawn
from tpusmi.tui.draw.look import Row
from tpusmi.tui.job.job_graphs import drawn
from tpusmi.tui.job.job_lines import job_lines
from tpusmi.tui.page import ScrollPage, scroll_keys, stepped

KEYS = scroll_keys("job", "process")


class JobPage(ScrollPage):
    """One job, as it is or was at the moment that the scene shows."""

    NAME = "job"
    KEYS = KEYS
    BINDINGS = [*KEYS]  # noqa: RUF012  # Textual's name and type

    def graphed(self, snapshot: Snapshot) -> tuple[object, Iterable[Drawn]]:
        process = self.scene.process
        return (None, ()) if process is None else (process.key, drawn(snapshot, process))

    def draw_body(self, snapshot: Snapshot) -> None:
        process = self.scene.process
        if process is None:
            rows = [self._no_process(), *self.scene.ends.lines(self.look, self.size.width)]
        else:
            span_s = self.span_s(snapshot)
            rows = job_lines(self.scene, snapshot, process, span_s, self.lines.size)
        self.lines.show(self.in_view(rows, self.lines.size.height))

    def _no_process(self) -> Row:
        key, newest = self.scene.process_key, self.scene.newest
        if key is None:
            text = "No process holds or uses the TPU."
        elif newest is not None and any(p.key == key for p in newest.processes):
            text = f"pid {key.pid} had not started yet."
        else:
            text = f"pid {key.pid} is gone."
        return self.look.line((text, "warn"))

    def action_step(self, step: int) -> None:
        """Show the next process."""
        snapshot = self.scene.snapshot
        keys = [] if snapshot is None else [p.key for p in snapshot.processes]
        self.scene.choose_process(stepped(keys, self.scene.process_key, step) if keys else None)
        self.top = 0
        self.draw()
