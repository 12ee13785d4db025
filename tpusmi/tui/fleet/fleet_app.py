"""The dashboard of a fleet: an app of its own, with the pages of a fleet."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

from textual.binding import BindingType
from textual.timer import Timer

from tpusmi.fleet.fleet_figures import FleetHost, FleetSnapshot, HostState
from tpusmi.fleet.fleet_source import FleetSource
from tpusmi.tui.base_app import AskedReader, BaseApp
from tpusmi.tui.base_scene import look_of
from tpusmi.tui.feed import Deliver, Reader
from tpusmi.tui.fleet.fleet_options import FleetOptions
from tpusmi.tui.fleet.fleet_page import FleetPage
from tpusmi.tui.fleet.fleet_scene import (
    FleetAnswer,
    FleetFailure,
    FleetScene,
    Preparing,
    Scope,
)
from tpusmi.tui.fleet.fleet_table_page import FleetTablePage
from tpusmi.tui.fleet.overview_page import OverviewPage
from tpusmi.tui.fleet_keys import EVERYWHERE

CANNOT_END = "End a process on its own host: `tpusmi kill PID` there (Y copies `ssh HOST`)"
NO_HOST = "That host is no longer in the answer"

WHOLE_WITHIN_S = 5.0
"""An answer that is partial, or in which hosts are pending, does not stay longer, however long the
interval is.
"""


class FleetDashboard(BaseApp):
    """Draws the newest answer about all hosts."""

    BINDINGS: ClassVar[list[BindingType]] = [*EVERYWHERE]
    scene: FleetScene

    def __init__(
        self,
        source: FleetSource,
        options: FleetOptions,
        reader: Callable[[Preparing, Deliver], AskedReader] = Reader,
    ) -> None:
        super().__init__(options.keys)
        self.scene = FleetScene(look_of(options), options, source)
        self._main = OverviewPage(self.scene)
        preparing = Preparing(source, self.scene)
        self._reader = reader(preparing, lambda answer: self.post_message(self.Arrived(answer)))
        self._reader.start()
        self._rest: Timer | None = None

    @property
    def page(self) -> FleetPage:
        page = super().page
        assert isinstance(page, FleetPage)
        return page

    def take(self, answer: object) -> None:
        self.scene.late_s = 0.0
        if isinstance(answer, Exception):
            raise answer
        assert isinstance(answer, (FleetAnswer, FleetFailure))
        if answer.moment_s != self.scene.moment_s:
            self._ask()  # the user has gone on to another moment
            return
        if isinstance(answer, FleetFailure):
            self.scene.fail(answer.sentence)
        else:
            self.scene.take(answer)
            self._expect_the_rest(answer.snapshot)
        self.page.draw()

    def _expect_the_rest(self, s: FleetSnapshot) -> None:
        if self._rest is not None:
            self._rest.stop()
            self._rest = None
        has_more = s.is_partial or any(host.state == HostState.PENDING for host in s.hosts)
        if has_more and self.scene.interval_s > WHOLE_WITHIN_S:
            self._rest = self.set_timer(WHOLE_WITHIN_S, self._ask_for_the_rest)

    def _ask_for_the_rest(self) -> None:
        if not self.scene.paused:  # else the end of the pause asks
            self._ask()

    def _tick(self) -> None:
        if self.scene.is_settled:
            self.page.draw()  # it is longer ago
        else:
            super()._tick()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool:
        """In a browser there is no directory for a screenshot."""
        return not (action == "picture" and self.is_web)

    # -- pages

    def open_hosts(self, scope: Scope) -> None:
        """Open the hosts of a job or a slice."""
        heat = isinstance(self.page, FleetTablePage) and self.page.is_heat
        self.push_screen(FleetTablePage(self.scene, scope, heat))

    def open_host(self, key: str, keys: Sequence[str]) -> None:
        """Open the page of a host; Tab goes on to the others of a list."""
        from tpusmi.tui.fleet.host_page import HostPage

        if self.scene.host(key) is None:
            self.say(NO_HOST)
        else:
            self.push_screen(HostPage(self.scene, key, keys))

    def open_topology(self, host: FleetHost) -> None:
        """Open the slice of that host as a torus."""
        from tpusmi.tui.fleet.fleet_torus_page import FleetTorusPage

        self.push_screen(FleetTorusPage(self.scene, host))

    # -- keys of every page

    def action_help(self) -> None:
        from tpusmi.tui.fleet.fleet_help import sections_of
        from tpusmi.tui.help import HelpScreen

        page = self.page
        self.push_screen(
            HelpScreen(
                self.scene.look,
                page.bindings,
                self.scene.is_simulated,
                page.NAME,
                sections_of(page.NAME, self.scene.look.glyphs),
            )
        )

    def action_step_back(self) -> None:
        if self.page.step_back():
            return
        if self.page is not self._main:
            self.pop_screen()
        elif self.scene.moment_s is not None:
            self.action_now()

    def action_travel(self, seconds: int) -> None:
        if self.scene.source.no_past:
            self.say(self.scene.source.no_past)
        elif self.scene.snapshot is not None:
            self.scene.travel(seconds)
            self._ask()
            self.page.draw()

    def action_now(self) -> None:
        if self.scene.moment_s is not None:
            self.scene.look_at(None)
            self._ask()
            self.page.draw()

    def action_no_end(self) -> None:
        self.say(CANNOT_END)

    def action_copy_ssh(self) -> None:
        text = self.page.copied_ssh()
        if text:
            self.copy(text)
        else:
            self.say("Select a host first")
