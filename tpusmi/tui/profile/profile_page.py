"""The profile page: what the newest trace of a job shows, beside the one before."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from tpusmi.model import Process, ProcessKey, Snapshot
from tpusmi.report import words
from tpusmi.tui.capturing.shown_captures import KeptProfile, ShownCaptures
from tpusmi.tui.draw.look import Row
from tpusmi.tui.keys import key
from tpusmi.tui.page import ScrollPage, paging_keys, stepped
from tpusmi.tui.scene import Scene

KEYS = [
    key("c", "compare", "Compare", "profile-compare", "Compare with the profile before", "c"),
    key("tab", "step(1)", "Next", "profile-next", "Next process with a profile", "Tab"),
    key("shift+tab", "step(-1)", "Before", "profile-before", "Previous process with a profile"),
    key("down", "line(1)", "Line down", "profile-line-down", "Scroll a line down"),
    key("up", "line(-1)", "Line up", "profile-line-up", "Scroll a line up"),
    *paging_keys("profile"),
]
REDRAW_S = 0.5
"""How often the seconds of a running capture are drawn."""
OPERATIONS = 40
"""Lines of operations at most: the page scrolls."""
NOTHING_YET = "No trace of it has been captured. P asks for how long, and captures one."


class ProfilePage(ScrollPage):
    """The profile of one process. It shows the capture and not the moment of the scene."""

    NAME = "profile"
    KEYS = KEYS
    BINDINGS = [*KEYS]  # noqa: RUF012  # Textual's name and type

    def __init__(self, scene: Scene) -> None:
        super().__init__(scene)
        self._compares = False
        self._drawn_of: tuple[object, ...] = ()
        self._drawn: list[Row] = []
        """The lines of the profile, kept because they take time to draw."""

    def on_mount(self) -> None:
        self.set_interval(REDRAW_S, self._show_progress)

    def _show_progress(self) -> None:
        if self.is_current and self._captures.running is not None:
            self.draw()

    @property
    def _captures(self) -> ShownCaptures:
        return self.scene.shown_captures()

    @property
    def _key(self) -> ProcessKey | None:
        return self._captures.shown or self.scene.process_key

    @property
    def _process(self) -> Process | None:
        """The process as it is now; None if it is gone."""
        newest = self.scene.newest
        processes = () if newest is None else newest.processes
        return next((p for p in processes if p.key == self._key), None)

    @property
    def targets(self) -> tuple[Process, ...]:
        process = self._process
        return () if process is None else (process,)

    def copied(self) -> str:
        return "" if self._key is None else str(self._key.pid)

    # -- drawing

    def draw_body(self, snapshot: Snapshot) -> None:
        width, height = self.lines.size
        head = [*self._head(width)]
        body = self.in_view(self._body(width), max(0, height - len(head)))
        self.lines.show([*head, *body][:height])

    def _head(self, width: int) -> Iterator[Row]:
        """Which process it is and how old its profile, the running capture, the last error."""
        look, captures, own = self.look, self._captures, self._key
        if own is None:
            yield look.line(("No process is selected.", "warn"))
            return
        kept, process = captures.newest(own), self._process
        age = "" if kept is None else f"captured {words.elapsed(captures.age_s(kept))} ago"
        gone = "it has ended" if process is None or process.is_dead else ""
        says_command = kept is not None and kept.profile.capture.command
        command = "" if process is None or says_command else words.command(process.command)
        yield look.line(
            (f"pid {own.pid}  ", "bold"),
            *((f"{text}  ", style) for text, style in ((age, "title"), (gone, "warn")) if text),
            (command, "dim"),
        )
        if captures.running is not None:
            yield look.cell(self._progress(captures), width, "paused")
        if error := captures.error(own):
            yield from look.wrapped(error, width, "bad", "! ")
        yield ()

    def _progress(self, captures: ShownCaptures) -> str:
        """`capturing 1 s of pid 12: 3s, reading the trace   Esc cancels`."""
        running = captures.running
        assert running is not None
        order = running.order
        what = f"capturing {order.duration_ms / 1000:g} s of pid {order.process.pid}"
        return f" {words.elapsed(captures.runs_for_s())}  {what}: {running.stage}  (Esc cancels)"

    def _body(self, width: int) -> list[Row]:
        captures = self._captures
        new, old = captures.newest(self._key), captures.before(self._key)
        if new is None:
            is_quiet = captures.running is None and not captures.error(self._key)
            return self.look.wrapped(NOTHING_YET, width, "dim") if is_quiet else []
        compared = old if self._compares else None
        what = (new, compared, width, self.look.style)
        if what != self._drawn_of:
            self._drawn_of, self._drawn = what, self._rows(new, compared, width)
        return self._drawn

    def _rows(self, new: KeptProfile, old: KeptProfile | None, width: int) -> list[Row]:
        if old is None:
            from tpusmi.report.profile import profile_text

            return self._styled(profile_text.lines((new.profile,), width, OPERATIONS))
        from tpusmi.report.profile import comparison

        apart = words.elapsed(new.at_s - old.at_s)
        title = self.look.line((f"compared with the profile {apart} before", "title"))
        return [title, (), *self._styled(comparison.lines(old.profile, new.profile, width))]

    def _styled(self, lines: Iterable[Sequence[tuple[str, str]]]) -> list[Row]:
        style = self.look.style
        return [
            self.look.line(*((text, name if name in style else "plain") for text, name in line))
            for line in lines
        ]

    # -- keys

    def action_compare(self) -> None:
        """Show the comparison with the profile before, or the profile again."""
        if self._captures.before(self._key) is None:
            self.app.say("There is one profile of it: P captures another")  # type: ignore[attr-defined]
            return
        self._compares, self.top = not self._compares, 0
        self.draw()

    def action_step(self, step: int) -> None:
        """Show the profile of the process that many steps further on."""
        captures = self._captures
        if captures.processes:
            captures.shown = stepped(captures.processes, self._key, step)
            self.scene.choose_process(captures.shown)
            self._compares, self.top = False, 0
            self.draw()

    def step_back(self) -> bool:
        running = self._captures.running
        if running is not None:
            running.stage = "ending it"
            running.thread.cancel()
        elif self._compares:
            self._compares, self.top = False, 0
        else:
            return False
        self.draw()
        return True
