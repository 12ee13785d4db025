"""What the dashboards of a host and of a fleet have in common: reading, and keys of every page."""

from __future__ import annotations

import gc
import signal
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from textual.app import App
from textual.binding import Binding
from textual.events import Event, Key, Paste
from textual.message import Message
from textual.screen import Screen
from textual.timer import Timer

from tpusmi.tui.base_page import BasePage
from tpusmi.tui.base_scene import BaseScene
from tpusmi.tui.export import copy_text, save_screenshot, self_contained
from tpusmi.tui.terminal import hung_up, on_continued, on_signals

LATE_TICKS = 3
"""Ticks without an answer after which the header says so."""
MESSAGE_S = 4.0
"""How long the footer shows a message."""
HUNG_UP_EVERY_S = 1.0
"""How often a lost terminal is looked for. Ticks can be a minute apart, while Textual spins."""


class AskedReader(Protocol):
    """Reads on a thread of its own, and posts `Arrived`."""

    def start(self) -> object: ...

    def ask(self) -> object: ...


class BaseApp(App[None]):
    """Draws what was read last. Reading happens elsewhere; only handlers touch widgets."""

    TITLE = "tpusmi"
    CSS = "Lines { height: 1; width: 100%; }"
    ENABLE_COMMAND_PALETTE = False
    ALLOW_SELECT = False
    AUTO_FOCUS = None
    scene: BaseScene
    _main: BasePage
    _reader: AskedReader

    @dataclass
    class Arrived(Message):
        """A snapshot, or the error in its place."""

        answer: object

    def __init__(self, keys: Mapping[str, str]) -> None:
        super().__init__(ansi_color=True)
        self.set_keymap(dict(keys))
        self._waited_s: float | None = None
        """For an answer that is due, in whole ticks; None while none is."""
        self._ticker: Timer | None = None

    @property
    def page(self) -> BasePage:
        """The page on top, under the dialogs."""
        pages = (screen for screen in reversed(self.screen_stack) if isinstance(screen, BasePage))
        return next(pages, self._main)

    def take(self, answer: object) -> None:
        """Accept and draw what was read, or the error in its place."""
        raise NotImplementedError

    def color_browser(self) -> None:
        """Give the terminal in a browser the colors of the theme. Others have their user's."""
        if self.is_web and self._driver is not None:
            self._driver.write(self.scene.look.default_colors)

    def get_default_screen(self) -> Screen[None]:
        return self._main

    def on_load(self) -> None:
        self._ask()  # the first snapshot is there when the screen is: nothing is drawn twice

    def on_mount(self) -> None:
        on_signals(lambda code: self.exit(return_code=code))
        on_continued(lambda: self.screen.refresh(layout=True))
        self.color_browser()
        self._ticker = self.set_interval(self.scene.interval_s, self._tick)
        self.set_interval(HUNG_UP_EVERY_S, self._leave_when_hung_up)

    def on_ready(self) -> None:
        # run() switched it off. Later searches for garbage leave out what the start made.
        if not gc.isenabled():
            gc.freeze()
            gc.set_threshold(10_000)  # a snapshot makes thousands of objects, and no cycle
            gc.enable()

    async def on_event(self, event: Event) -> None:
        # While a filter is typed every key is text, from the very next one on: the focus of a
        # widget that is just being shown would come too late for fast typing.
        is_text = isinstance(event, Paste) or (isinstance(event, Key) and event.key != "ctrl+c")
        top = self.screen_stack[-1] if self.screen_stack else None
        prompt = top.prompt if is_text and isinstance(top, BasePage) and top.typing else None
        if prompt is not None and prompt.is_open:
            prompt.take(event)
        else:
            await super().on_event(event)

    def on_base_app_arrived(self, message: Arrived) -> None:
        self._waited_s = None
        self.take(message.answer)

    # -- keys of every page

    def action_leave(self) -> None:
        self.exit(return_code=0)

    def action_palette(self) -> None:
        from tpusmi.tui.palette import PaletteScreen

        self.push_screen(PaletteScreen(self.scene.look, self.page.bindings), self._run_command)

    async def _run_command(self, binding: Binding | None) -> None:
        if binding is None:
            return
        name = binding.action.partition("(")[0]
        owner = self.page if hasattr(self.page, f"action_{name}") else self
        if self.check_action(name, ()):
            await self.run_action(binding.action, owner)

    def action_picture(self) -> None:
        svg = self_contained(self.export_screenshot(title="tpusmi"))
        try:
            path = save_screenshot(svg, self.scene.picture_name)
        except OSError as error:
            self.say(f"Cannot save the screenshot: {error.strerror}")
        else:
            self.say(f"Saved {path}")

    def action_copy(self) -> None:
        self.copy(self.page.copied())

    def copy(self, text: str) -> None:
        """Send that text to the clipboard, and say so."""
        if text and self._driver is not None:
            self.say(copy_text(text, self._driver.write, self.is_web))

    def say(self, text: str) -> None:
        """Show a message in the footer for a moment."""
        self.scene.message = text
        self.page.draw_footer()

        def forget() -> None:
            if self.scene.message is text:
                self.scene.message = ""
                self.page.draw_footer()

        self.set_timer(MESSAGE_S, forget)

    def action_pause(self) -> None:
        self.scene.paused = not self.scene.paused
        self._draw_header()
        if not self.scene.paused:
            self._ask()

    def action_span(self) -> None:
        self.page.change_span()

    def action_interval(self, step: int) -> None:
        self.scene.change_interval(step)
        if self._ticker is not None:
            self._ticker.stop()
        self._ticker = self.set_interval(self.scene.interval_s, self._tick)
        self._draw_header()

    def action_again(self) -> None:
        self._ask()

    # -- reading

    def _tick(self) -> None:
        if not self.scene.paused:
            if self._waited_s is not None:
                # However long this machine stood still, or drew, it counts as one tick.
                self._waited_s += self.scene.interval_s
            self._ask()
            self.scene.late_s = self._late_s()
            if self.scene.late_s:
                self._draw_header()

    def _leave_when_hung_up(self) -> None:
        if hung_up():
            self.exit(return_code=128 + signal.SIGHUP)

    def _ask(self) -> None:
        if self._waited_s is None:
            self._waited_s = 0.0
            self._reader.ask()

    def _late_s(self) -> float:
        """How long the source has not answered, if that is long; else 0."""
        waited_s = self._waited_s or 0.0
        return waited_s if waited_s >= LATE_TICKS * self.scene.interval_s else 0.0

    def _draw_header(self) -> None:
        self.scene.late_s = self._late_s()
        self.page.draw_header()
