"""The dashboard: takes snapshots, hands them to its parts, and answers keys."""

from __future__ import annotations

import asyncio
import gc
import os
import select
import signal
import time
from collections.abc import Callable
from typing import ClassVar

from textual.app import App, ComposeResult
from textual.binding import BindingType
from textual.events import Event, Key, Paste
from textual.message import Message
from textual.timer import Timer

from tpusmi.model import Snapshot
from tpusmi.sources.users import user_name
from tpusmi.tui.board import Board
from tpusmi.tui.chrome import Status
from tpusmi.tui.ends import SHOWN_S, Ending, Finished, Question, Told
from tpusmi.tui.feed import Deliver, Ender, Feed, Options, Reader
from tpusmi.tui.keys import BINDINGS, offered
from tpusmi.tui.look import Look
from tpusmi.tui.prompt import Prompt

INTERVALS_S = (0.25, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0)
LATE_TICKS = 3
"""Ticks without an answer after which the header says so."""
HUNG_UP_EVERY_S = 1.0
"""Not with the ticks, which can be a minute apart: the driver spins meanwhile."""


class Dashboard(App[None]):
    """Draws the newest snapshot. Reading happens elsewhere; only handlers touch widgets."""

    TITLE = "tpusmi"
    CSS = "Lines { height: 1; width: 100%; }"
    BINDINGS: ClassVar[list[BindingType]] = [*BINDINGS]
    ENABLE_COMMAND_PALETTE = False
    ALLOW_SELECT = False
    AUTO_FOCUS = None

    class Arrived(Message):
        """A snapshot, or why there is none."""

        def __init__(self, answer: Snapshot | Exception) -> None:
            super().__init__()
            self.answer = answer

    def __init__(
        self, feed: Feed, options: Options, reader: Callable[[Feed, Deliver], Reader] = Reader
    ) -> None:
        super().__init__(ansi_color=True)
        self._look = Look(ascii=options.ascii, color=options.color)
        self._options = options
        self._board = Board(self._look, options, feed.history)
        self._interval_s = options.interval_s
        self._paused = False
        self._newest: Snapshot | None = None
        self._snapshot: Snapshot | None = None
        """The one that is drawn. It stays while a person is asked about a process in it."""
        self._is_asking = False
        self._asked_s: float | None = None
        self._ticker: Timer | None = None
        self._reader = reader(feed, lambda answer: self.post_message(self.Arrived(answer)))

    def compose(self) -> ComposeResult:
        self._draw()
        yield from self._board.widgets

    def on_mount(self) -> None:
        self._leave_on_signals()
        self._reader.start()
        self._ask()
        self._ticker = self.set_interval(self._interval_s, self._tick)
        self.set_interval(HUNG_UP_EVERY_S, self._leave_when_hung_up)

    def on_ready(self) -> None:
        # run() switched it off. What the start left is kept out of every later search for garbage.
        if not gc.isenabled():
            gc.freeze()
            gc.enable()

    def on_resize(self) -> None:
        self.call_later(self._draw)

    async def on_event(self, event: Event) -> None:
        # While a filter is typed every key is text, from the very next one on: the focus of a
        # widget that is only just being shown would come too late for a fast hand.
        text = isinstance(event, Paste) or (isinstance(event, Key) and event.key != "ctrl+c")
        if text and self._board.typing:
            self._board.prompt.take(event)
        else:
            await super().on_event(event)

    def on_dashboard_arrived(self, message: Arrived) -> None:
        self._asked_s = None
        if isinstance(message.answer, Exception):
            raise message.answer
        self._newest = message.answer
        if self._is_asking:
            self._draw_header()
        else:
            self._draw()

    def on_grid_moved(self) -> None:
        if self._snapshot is not None:
            self._board.draw_detail(self._snapshot, self._status())

    def on_prompt_typed(self, message: Prompt.Typed) -> None:
        board = self._board
        if message.done:
            board.typing = False
            board.prompt.show_text(message.text, typing=False)
        board.table.filter = message.text
        self._draw()

    # -- keys

    def action_leave(self) -> None:
        self.exit(return_code=0)

    def action_help(self) -> None:
        from tpusmi.tui.help import HelpScreen

        simulated = self._snapshot is not None and self._snapshot.simulated
        self.push_screen(HelpScreen(self._look, offered(self._may_end), simulated))

    def action_expand(self) -> None:
        self._board.expanded = bool(self._board.processes.items)
        self._draw()

    def action_step_back(self) -> None:
        if self._board.expanded:
            self._board.expanded = False
        else:
            self._board.table.filter = ""
        self._draw()

    def action_filter(self) -> None:
        self._board.expanded, self._board.typing = False, True
        self._draw()
        self._board.prompt.start(self._board.table.filter)

    def action_sort(self, step: int) -> None:
        self._board.table.sort_by(step)
        self._draw()

    def action_reverse(self) -> None:
        self._board.table.upside_down ^= True
        self._draw()

    def action_pause(self) -> None:
        self._paused = not self._paused
        self._draw_header()
        if not self._paused:
            self._ask()

    def action_interval(self, step: int) -> None:
        at = min(range(len(INTERVALS_S)), key=lambda i: abs(INTERVALS_S[i] - self._interval_s))
        self._interval_s = INTERVALS_S[min(max(at + step, 0), len(INTERVALS_S) - 1)]
        if self._ticker is not None:
            self._ticker.stop()
        self._ticker = self.set_interval(self._interval_s, self._tick)
        self._draw_header()

    def action_again(self) -> None:
        self._ask()

    def action_move(self, rows: int) -> None:
        self._board.processes.move(rows)

    def action_page(self, pages: int) -> None:
        self._board.processes.move(pages * self._board.processes.page)

    def action_jump(self, index: int) -> None:
        if items := self._board.processes.items:
            self._board.processes.move_to(index % len(items))

    def action_devices(self, pages: int) -> None:
        self._board.devices.scroll_rows(pages * self._board.devices.page)

    # -- ending processes

    @property
    def _may_end(self) -> bool:
        return self._options.ender is not None

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool:
        """False for what is not there on this dashboard."""
        return action != "end" or self._may_end

    def action_end(self, choice: str) -> None:
        ender, process, snapshot = self._options.ender, self._board.selected, self._snapshot
        if ender is None or process is None or snapshot is None or self._is_asking:
            return
        from tpusmi.tui.kill import KillScreen
        from tpusmi.tui.question import Text

        question = Question(snapshot, process, ender.plan(snapshot, process))
        user = self._options.user or user_name(os.geteuid())
        text = Text(self._look, question, user, self._board.ends.telling.get(process.key))
        screen = KillScreen(self._look, text, choice, bool(question.plan.targets))
        self._is_asking = True
        self.push_screen(screen, lambda number: self._answered(ender, question, number))

    def _answered(self, ender: Ender, question: Question, number: int | None) -> None:
        self._is_asking = False
        if number is not None:
            Ending(ender, question, number, self.post_message).start()
        self._draw()

    def on_end_told(self, message: Told) -> None:
        self._board.ends.telling.update(message.words)
        self._draw()

    def on_end_finished(self, message: Finished) -> None:
        ends, key = self._board.ends, message.process.key
        outcome = ends.finish(message.process, message.answer)

        def forget() -> None:
            ends.forget(key, outcome)
            self._draw()

        self.set_timer(SHOWN_S, forget)
        self._draw()
        self._ask()

    # -- reading

    def _tick(self) -> None:
        if not self._paused:
            self._ask()
            if self._late_s():
                self._draw_header()

    def _leave_when_hung_up(self) -> None:
        if hung_up():
            self.exit(return_code=128 + signal.SIGHUP)

    def _ask(self) -> None:
        if self._asked_s is None:
            self._asked_s = time.monotonic()
            self._reader.ask()

    def _late_s(self) -> float:
        """How long the feed has been thinking, when that is worth a word."""
        waited_s = 0.0 if self._asked_s is None else time.monotonic() - self._asked_s
        return waited_s if waited_s >= LATE_TICKS * self._interval_s else 0.0

    def _leave_on_signals(self) -> None:
        """A killed dashboard gives the terminal back first."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(number, lambda code: self.exit(return_code=code), 128 + number)

    # -- drawing

    def _draw(self) -> None:
        if not self._is_asking:
            self._snapshot = self._newest
        self._board.draw(self._snapshot, self._status())

    def _draw_header(self) -> None:
        self._board.draw_header(self._newest, self._status())

    def _status(self) -> Status:
        return Status(*self.size, self._interval_s, self._paused, self._late_s())


def hung_up() -> bool:
    """True when the terminal is gone. Without a controlling terminal no signal says so, and reading
    from what is left of it ends at once, again and again.
    """
    poll = select.poll()
    poll.register(0, 0)
    return any(event & (select.POLLHUP | select.POLLERR) for _, event in poll.poll(0))
