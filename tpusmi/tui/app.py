"""The dashboard's app: takes snapshots, hands them to the page on top, handles keys."""

from __future__ import annotations

import gc
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.events import Event, Key, Paste
from textual.message import Message
from textual.screen import Screen
from textual.timer import Timer

from tpusmi.model import Snapshot
from tpusmi.tui.capturing.capturing_app import CapturingApp
from tpusmi.tui.ending import ends
from tpusmi.tui.ending.ends import SHOWN_S, Finished, Progress, Question
from tpusmi.tui.export import copy_text, save_screenshot, self_contained
from tpusmi.tui.feed import Deliver, Feed, Options, Reader
from tpusmi.tui.keys import EVERYWHERE
from tpusmi.tui.main.main_page import MainPage
from tpusmi.tui.page import Page
from tpusmi.tui.pages import opened
from tpusmi.tui.scene import CANNOT_END, Scene, look_of
from tpusmi.tui.terminal import hung_up, on_continued, on_signals

LATE_TICKS = 3
"""Ticks without an answer after which the header says so."""
MESSAGE_S = 4.0
"""How long the footer shows a message."""
HUNG_UP_EVERY_S = 1.0
"""How often a lost terminal is looked for. Ticks can be a minute apart, while Textual spins."""


class Dashboard(CapturingApp):
    """Draws the newest snapshot. Reading happens elsewhere; only handlers touch widgets."""

    TITLE = "tpusmi"
    CSS = "Lines { height: 1; width: 100%; }"
    BINDINGS: ClassVar[list[BindingType]] = [*EVERYWHERE]
    ENABLE_COMMAND_PALETTE = False
    ALLOW_SELECT = False
    AUTO_FOCUS = None

    @dataclass
    class Arrived(Message):
        """A snapshot, or the error in its place."""

        answer: Snapshot | Exception

    def __init__(
        self, feed: Feed, options: Options, reader: Callable[[Feed, Deliver], Reader] = Reader
    ) -> None:
        super().__init__(ansi_color=True)
        self.set_keymap(dict(options.keys))
        self.scene = Scene(look_of(options), options, feed.history)
        self._main = MainPage(self.scene)
        self._is_asking = False
        """The user is asked about a process: the shown moment stays until the answer."""
        self._waiting_since_s: float | None = None
        self._ticker: Timer | None = None
        self._reader = reader(feed, lambda answer: self.post_message(self.Arrived(answer)))
        self._reader.start()  # before Textual takes the terminal: there may be no threads left

    @property
    def page(self) -> Page:
        """The page on top, under the dialogs."""
        pages = (screen for screen in reversed(self.screen_stack) if isinstance(screen, Page))
        return next(pages, self._main)

    def get_default_screen(self) -> Screen[None]:
        return self._main

    def on_load(self) -> None:
        self._ask()  # the first snapshot is there when the screen is: nothing is drawn twice

    def on_mount(self) -> None:
        on_signals(lambda code: self.exit(return_code=code))
        on_continued(lambda: self.screen.refresh(layout=True))
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
        prompt = top.prompt if is_text and isinstance(top, Page) and top.typing else None
        if prompt is not None and prompt.is_open:
            prompt.take(event)
        else:
            await super().on_event(event)

    def on_dashboard_arrived(self, message: Arrived) -> None:
        self._waiting_since_s = None
        if isinstance(message.answer, Exception):
            raise message.answer
        self.scene.take(message.answer)
        if self._is_asking:
            self._draw_header()
        else:
            self._draw()

    # -- keys of every page

    def action_leave(self) -> None:
        self.exit(return_code=0)

    def action_help(self) -> None:
        from tpusmi.tui.help import HelpScreen

        simulated = self.scene.snapshot is not None and self.scene.snapshot.simulated
        page = self.page
        self.push_screen(HelpScreen(self.scene.look, page.bindings, simulated, page.NAME))

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
        newest = self.scene.newest
        svg = self_contained(self.export_screenshot(title="tpusmi"))
        try:
            path = save_screenshot(svg, "" if newest is None else newest.host.name)
        except OSError as error:
            self.say(f"Cannot save the screenshot: {error.strerror}")
        else:
            self.say(f"Saved {path}")

    def action_copy(self) -> None:
        text = self.page.copied()
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

    def action_open(self, name: str) -> None:
        """Open the page of that name in place of the open one."""
        if name == self.page.NAME:
            return
        put = self.switch_screen if self.page.NAME else self.push_screen
        put(opened(name, self.scene))

    def action_step_back(self) -> None:
        if self.scene.back_s:
            self.action_now()
        elif not self.page.step_back():
            self.pop_screen()

    def action_pause(self) -> None:
        self.scene.paused = not self.scene.paused
        self._draw_header()
        if not self.scene.paused:
            self._ask()

    def action_aside(self, step: int) -> None:
        if not self.page.sideways(step):
            self.action_travel(-10 * step)

    def action_travel(self, seconds: int) -> None:
        self.scene.look_at(self.scene.back_s + seconds)
        self._draw()

    def action_now(self) -> None:
        self.scene.look_at(0.0)
        self._draw()

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

    # -- ending processes

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool:
        """False for actions this dashboard does not have. In a browser there is no directory."""
        absent = {"end": self.scene.options.host is None, "picture": self.is_web}
        return not absent.get(action, False)

    def action_end(self, choice: str) -> None:
        scene, targets = self.scene, self.page.targets
        host, snapshot = scene.options.host, scene.newest
        if host is None or snapshot is None or self._is_asking:
            pass
        elif there := ends.still_there(snapshot, targets):
            question = ends.question(host, scene.options, snapshot, there)
            if question.needless:
                self.say(question.needless)
            else:
                self._ask_about(question, choice)
        elif any(not p.is_verified for p in targets):
            self.say(CANNOT_END)

    def _ask_about(self, question: Question, choice: str) -> None:
        from tpusmi.tui.ending.kill_screen import KillScreen
        from tpusmi.tui.ending.question import text_about

        text = text_about(self.scene.look, question, self.scene.user, self.scene.ends.progress)
        chosen = choice if question.is_of_stale else ""  # no slip ends a run
        screen = KillScreen(self.scene.look, text, chosen, bool(question.plan.targets))
        self._is_asking = True
        self.push_screen(screen, lambda number: self._answered(question, number))

    def _answered(self, question: Question, number: int | None) -> None:
        self._is_asking = False
        if number is not None:
            carry_out = self.scene.options.carry_out
            ends.EndThread(question, carry_out, number, self.post_message).begin()
            self.page.answered()
        self._draw()

    def on_end_progress(self, message: Progress) -> None:
        self.scene.ends.progress.update(message.words)
        self._draw()

    def on_end_finished(self, message: Finished) -> None:
        outcomes = self.scene.ends.finish(message)

        def forget() -> None:
            self.scene.ends.forget(outcomes)
            self._draw()

        self.set_timer(SHOWN_S, forget)
        self._draw()
        self._ask()

    # -- reading

    def _tick(self) -> None:
        if not self.scene.paused:
            self._ask()
            self.scene.late_s = self._late_s()
            if self.scene.late_s:
                self._draw_header()

    def _leave_when_hung_up(self) -> None:
        if hung_up():
            self.exit(return_code=128 + signal.SIGHUP)

    def _ask(self) -> None:
        if self._waiting_since_s is None:
            self._waiting_since_s = time.monotonic()
            self._reader.ask()

    def _late_s(self) -> float:
        """How long the feed has not answered, if that is long; else 0."""
        since_s = self._waiting_since_s
        waited_s = 0.0 if since_s is None else time.monotonic() - since_s
        return waited_s if waited_s >= LATE_TICKS * self.scene.interval_s else 0.0

    # -- drawing

    def _draw(self) -> None:
        if not self._is_asking:
            self.scene.refresh()
        if news := self.scene.news():
            self.say(news)
        self.page.draw()

    def _draw_header(self) -> None:
        self.scene.late_s = self._late_s()
        self.page.draw_header()
