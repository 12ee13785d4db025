"""The dashboard's app: takes snapshots, hands them to the page on top, handles keys."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from textual.binding import BindingType

from tpusmi.model import Snapshot
from tpusmi.tui.base_app import BaseApp
from tpusmi.tui.base_scene import look_of
from tpusmi.tui.capturing.capturing_app import CapturingApp
from tpusmi.tui.ending import ends
from tpusmi.tui.ending.ends import SHOWN_S, Finished, Progress, Question
from tpusmi.tui.feed import Deliver, Feed, Options, Reader
from tpusmi.tui.keys import EVERYWHERE
from tpusmi.tui.main.main_page import MainPage
from tpusmi.tui.page import Page
from tpusmi.tui.pages import opened
from tpusmi.tui.scene import CANNOT_END, NONE_SELECTED, Scene


class Dashboard(BaseApp, CapturingApp):
    """Draws the newest snapshot of a host."""

    BINDINGS: ClassVar[list[BindingType]] = [*EVERYWHERE]
    scene: Scene

    def __init__(
        self, feed: Feed, options: Options, reader: Callable[[Feed, Deliver], Reader] = Reader
    ) -> None:
        super().__init__(options.keys)
        self.scene = Scene(look_of(options), options, feed.history)
        self._main = MainPage(self.scene)
        self._is_asking = False
        """The user is asked about a process: the shown moment stays until the answer."""
        self._reader = reader(feed, lambda answer: self.post_message(self.Arrived(answer)))
        self._reader.start()  # before Textual takes the terminal: there may be no threads left

    @property
    def page(self) -> Page:
        page = super().page
        assert isinstance(page, Page)
        return page

    def take(self, answer: object) -> None:
        if isinstance(answer, Exception):
            raise answer
        assert isinstance(answer, Snapshot)
        self.scene.take(answer)
        if self._is_asking:
            self._draw_header()
        else:
            self._draw()

    # -- keys of every page

    def action_help(self) -> None:
        from tpusmi.tui.help import HelpScreen

        simulated = self.scene.snapshot is not None and self.scene.snapshot.simulated
        page = self.page
        self.push_screen(HelpScreen(self.scene.look, page.bindings, simulated, page.NAME))

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

    def action_aside(self, step: int) -> None:
        if not self.page.sideways(step):
            self.action_travel(-10 * step)

    def action_travel(self, seconds: int) -> None:
        self.scene.look_at(self.scene.back_s + seconds)
        self._draw()

    def action_now(self) -> None:
        self.scene.look_at(0.0)
        self._draw()

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
        else:
            self.say(NONE_SELECTED)

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

    # -- drawing

    def _draw(self) -> None:
        if not self._is_asking:
            self.scene.refresh()
        if news := self.scene.news():
            self.say(news)
        self.page.draw()
