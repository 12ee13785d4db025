"""The dashboard: takes snapshots, hands them to its parts, and answers keys."""

from __future__ import annotations

import asyncio
import gc
import signal
import time
from collections.abc import Callable
from typing import ClassVar

from textual.app import App, ComposeResult
from textual.binding import BindingType
from textual.message import Message
from textual.timer import Timer

from tpusmi.model import Device, Process, Snapshot
from tpusmi.tui import chrome
from tpusmi.tui.arrange import Heights, Wanted, arrange
from tpusmi.tui.detail import detail_lines
from tpusmi.tui.devices import DeviceTable
from tpusmi.tui.feed import Deliver, Feed, Options, Reader
from tpusmi.tui.grid import Grid
from tpusmi.tui.keys import BINDINGS
from tpusmi.tui.lines import Lines
from tpusmi.tui.look import Look
from tpusmi.tui.processes import ProcessTable
from tpusmi.tui.prompt import Prompt

INTERVALS_S = (0.25, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0)
LATE_TICKS = 3
"""Ticks without an answer after which the header says so."""


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
        self._options = options
        self._look = look = Look(ascii=options.ascii, color=options.color)
        self._interval_s = options.interval_s
        self._paused = False
        self._expanded = False
        self._typing = False
        self._snapshot: Snapshot | None = None
        self._asked_s: float | None = None
        self._ticker: Timer | None = None
        self._device_table = DeviceTable(look, feed.history)
        self._process_table = ProcessTable(look)
        self._header, self._detail, self._notices, self._footer = (
            Lines(look, id=name) for name in ("header", "detail", "notices", "footer")
        )
        self._prompt = Prompt(look, id="prompt")
        self._devices: Grid[Device] = Grid(
            look, self._device_table.columns(), lambda d: d.key, "devices"
        )
        self._processes: Grid[Process] = Grid(
            look, self._process_table.columns(), lambda p: p.key, "processes"
        )
        self._parts: tuple[Lines, ...] = (
            self._devices,
            self._processes,
            self._detail,
            self._notices,
            self._prompt,
        )
        self._heights: Heights | None = None
        self._reader = reader(feed, lambda answer: self.post_message(self.Arrived(answer)))

    def compose(self) -> ComposeResult:
        self._arrange()
        yield from (self._header, *self._parts, self._footer)

    def on_mount(self) -> None:
        self._leave_on_signals()
        self._reader.start()
        self._ask()
        self._ticker = self.set_interval(self._interval_s, self._tick)

    def on_ready(self) -> None:
        # run() switched it off. What the start left is kept out of every later search for garbage.
        if not gc.isenabled():
            gc.freeze()
            gc.enable()

    def on_resize(self) -> None:
        self.call_later(self._draw)

    def on_dashboard_arrived(self, message: Arrived) -> None:
        self._asked_s = None
        if isinstance(message.answer, Exception):
            raise message.answer
        self._snapshot = message.answer
        self._draw()

    def on_grid_moved(self) -> None:
        self._draw_detail()

    def on_prompt_typed(self, message: Prompt.Typed) -> None:
        if message.done:
            self._typing = False
            self.set_focus(None)
            self._prompt.show_text(message.text, typing=False)
        self._process_table.filter = message.text
        self._draw()

    # -- keys

    def action_leave(self) -> None:
        self.exit(return_code=0)

    def action_help(self) -> None:
        from tpusmi.tui.help import HelpScreen

        simulated = self._snapshot is not None and self._snapshot.simulated
        self.push_screen(HelpScreen(self._look, BINDINGS, simulated))

    def action_expand(self) -> None:
        self._expanded = bool(self._processes.items)
        self._draw()

    def action_step_back(self) -> None:
        if self._expanded:
            self._expanded = False
        else:
            self._process_table.filter = ""
        self._draw()

    def action_filter(self) -> None:
        self._expanded, self._typing = False, True
        self._prompt.display = True
        self._prompt.start(self._process_table.filter)

    def action_sort(self, step: int) -> None:
        self._process_table.sort_by(step)
        self._draw()

    def action_reverse(self) -> None:
        self._process_table.upside_down ^= True
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
        self._processes.move(rows)

    def action_page(self, pages: int) -> None:
        self._processes.move(pages * self._processes.page)

    def action_jump(self, index: int) -> None:
        if self._processes.items:
            self._processes.move_to(index % len(self._processes.items))

    def action_devices(self, pages: int) -> None:
        self._devices.scroll_rows(pages * self._devices.page)

    # -- reading

    def _tick(self) -> None:
        if not self._paused:
            self._ask()
            if self._late_s():
                self._draw_header()

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
        self._draw_header()
        self._footer.show([chrome.footer(self._look, BINDINGS)])
        snapshot = self._snapshot
        if snapshot is None:
            return
        self._device_table.snapshot = snapshot
        self._process_table.take(snapshot)
        shown = self._process_table.shown()
        self._devices.show_items(snapshot.devices)
        if shown and self._processes.cursor not in {p.key for p in shown}:
            self._processes.cursor = shown[0].key
        self._processes.sorted_by = (
            self._process_table.sort_title,
            self._process_table.upside_down,
        )
        self._processes.show_items(shown)
        self._notices.show(chrome.notices(self._look, snapshot))
        self._arrange()
        self._draw_detail()

    def _draw_header(self) -> None:
        status = chrome.Status(self._interval_s, self._paused, self._late_s())
        self._header.show(
            [chrome.header(self._look, self._snapshot, self._options, status, self.size.width)]
        )

    def _draw_detail(self) -> None:
        snapshot, index = self._snapshot, self._processes.index
        if snapshot is None or self._heights is None:
            return
        width, height = self.size.width, self._heights.detail
        if index is not None:
            p = self._processes.items[index]
            devices = self._process_table.devices(p)
            self._detail.show(detail_lines(self._look, snapshot, p, devices, width, height))
        else:
            self._detail.show(chrome.nothing(self._look, snapshot, self._process_table.filter))

    def _arrange(self) -> None:
        """Give each part its lines; the screen is laid out anew only when that changes."""
        typing = self._typing or bool(self._process_table.filter)
        want = Wanted(
            devices=len(self._devices.items) + 1 if self._devices.items else 0,
            processes=len(self._processes.items) + 1 if self._processes.items or typing else 0,
            notices=len(self._notices.rows),
            prompt=int(typing),
            detail=bool(self._processes.items),
            expanded=self._expanded,
        )
        heights = arrange(want, self.size.height)
        if heights == self._heights:
            return
        self._heights = heights
        for part, height in zip(self._parts, heights, strict=True):
            part.display = height > 0
            part.styles.height = height
