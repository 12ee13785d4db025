"""The job page: one process, its steps, compilations and phases over the last minutes."""

from __future__ import annotations

from collections.abc import Iterable

from tpusmi.model import Process, Snapshot
from tpusmi.tui.draw.lines import Lines
from tpusmi.tui.draw.look import Row
from tpusmi.tui.job.graphs import Moment
from tpusmi.tui.job.lines import Around, job_lines
from tpusmi.tui.keys import key
from tpusmi.tui.page import Page
from tpusmi.tui.scene import Scene

SPANS_S = (600, 300, 60)
OTHER = "The next process, or the one before"
PAGE = "Scroll what does not fit"

KEYS = [
    key("tab,down", "step(1)", "Next", "job-next", OTHER, "Tab"),
    key("shift+tab,up", "step(-1)", "Before", "job-before", OTHER),
    key("w", "span", "Span", "job-span", "Draw the last 10 minutes, 5, or the last one", "w"),
    key("pagedown", "scroll(1)", "Further", "job-down", PAGE),
    key("pageup", "scroll(-1)", "Back", "job-up", PAGE),
    key("home", "jump(0)", "Top", "job-top", PAGE),
    key("end", "jump(-1)", "Bottom", "job-bottom", PAGE),
]


class JobPage(Page):
    """One job, as it is or was at the moment that the scene shows."""

    NAME = "job"
    KEYS = KEYS
    BINDINGS = [*KEYS]  # noqa: RUF012  # Textual's name and type

    def __init__(self, scene: Scene) -> None:
        super().__init__(scene)
        self.lines = Lines(self.look, id="job")
        self.span_s = SPANS_S[0]
        self._rows: list[Row] = []
        self._top = 0
        """The first line that is shown."""

    def body(self) -> Iterable[Lines]:
        self.lines.styles.height = "1fr"
        return (self.lines,)

    @property
    def process(self) -> Process | None:
        """The chosen one, and no other in its place: keys that end it are meant for it alone."""
        process = self.scene.process
        chosen = self.scene.process_key
        return process if process is not None and chosen in (None, process.key) else None

    @property
    def targets(self) -> tuple[Process, ...]:
        return () if self.process is None else (self.process,)

    def copied(self) -> str:
        return "" if self.process is None else str(self.process.pid)

    def draw_body(self, snapshot: Snapshot) -> None:
        scene, process = self.scene, self.process
        ends = scene.ends.lines(self.look, self.size.width)
        if process is None:
            self._rows = [self._nobody(), *ends]
        else:
            scene.process_key = process.key
            moment = Moment(
                *(self.look, snapshot, process, scene.graphs, scene.history, self.span_s),
                is_past=bool(scene.back_s),
            )
            around = Around(scene.ends.telling.get(process.key), ends)
            self._rows = job_lines(moment, around, self.lines.size)
        self._show()

    def _nobody(self) -> Row:
        gone = self.scene.process_key
        text = "No process holds or uses the TPU." if gone is None else f"pid {gone.pid} is gone."
        return self.look.line((text, "warn"))

    def _show(self) -> None:
        """The lines from the top one on; the last place says how many are below."""
        height = self.lines.size.height
        self._top = min(max(self._top, 0), max(0, len(self._rows) - height))
        shown = self._rows[self._top : self._top + height]
        below = len(self._rows) - self._top - len(shown)
        if below > 0 and shown:
            text = f"{self.look.glyphs.down} {below + 1} more lines (PgDn)"
            shown[-1] = self.look.line((text, "dim"))
        self.lines.show(shown)

    # -- keys

    def action_step(self, step: int) -> None:
        """Show the next process."""
        snapshot = self.scene.snapshot
        keys = [] if snapshot is None else [p.key for p in snapshot.processes]
        if not keys:
            return
        chosen = self.scene.process_key
        at = keys.index(chosen) + step if chosen in keys else 0
        self.scene.process_key = keys[at % len(keys)]
        self._top = 0
        self.draw()

    def action_span(self) -> None:
        """Draw another span of time."""
        self.span_s = SPANS_S[(SPANS_S.index(self.span_s) + 1) % len(SPANS_S)]
        self.draw()

    def action_scroll(self, pages: int) -> None:
        """Scroll by so many screens."""
        self._top += pages * max(1, self.lines.size.height - 1)
        self._show()

    def action_jump(self, end: int) -> None:
        """Scroll to the top, or to the bottom."""
        self._top = len(self._rows) if end else 0
        self._show()
