"""The topology page of a fleet: the chips of one slice at their places, and their links."""

from __future__ import annotations

from textual.events import Click

from tpusmi.fleet.fleet_figures import FleetHost
from tpusmi.fleet.report.fleet_torus import torus_of
from tpusmi.model.torus import Torus
from tpusmi.report.quantities import OF_TORUS
from tpusmi.text import clean
from tpusmi.tui.draw.sorting import stepped
from tpusmi.tui.fleet.fleet_page import ScrollingFleetPage
from tpusmi.tui.fleet.fleet_scene import FleetScene
from tpusmi.tui.fleet_keys import TORUS
from tpusmi.tui.topology import planes
from tpusmi.tui.topology.torus_view import TorusView


class FleetTorusPage(ScrollingFleetPage):
    """The slice of a host; of a host without one, its own chips."""

    KEYS = TORUS
    BINDINGS = [*TORUS]  # noqa: RUF012  # Textual's name and type
    NAME = "topology"

    def __init__(self, scene: FleetScene, host: FleetHost) -> None:
        super().__init__(scene)
        self._slice = host.slice
        self._host_key = host.key
        self._view = TorusView(scene.look)
        self._quantity = scene.quantity
        self._made: tuple[tuple[object, ...], Torus] | None = None

    @property
    def page_title(self) -> str:
        return f"slice {clean(self._slice, 60)}" if self._slice else self._own_name

    @property
    def _own_name(self) -> str:
        host = self.scene.host(self._host_key)
        return "" if host is None else f"host {clean(host.name, 60)}"

    @property
    def _hosts(self) -> list[FleetHost]:
        hosts = () if self.scene.snapshot is None else self.scene.snapshot.hosts
        if self._slice is None:
            return [h for h in hosts if h.key == self._host_key]
        return [h for h in hosts if h.slice == self._slice]

    @property
    def host_name(self) -> str:
        chip = self._view.chip
        return "" if chip is None else chip.host

    def draw_shown(self) -> None:
        torus = self._torus()
        size = planes.size_text(torus.size)
        head = self.look.joined(part for part in (torus.title or self.page_title, size) if part)
        self._view.top = self.top
        rows = self._view.lines(torus, head, self._quantity, self.room)
        self.top, self.screen_lines = self._view.top, self._view.screen_lines
        self.lines.show(rows)

    def _torus(self) -> Torus:
        """The torus of the newest answer, made once for it."""
        made_of = self.scene.snapshot, self._slice, self._quantity
        if self._made is None or any(
            a is not b for a, b in zip(self._made[0], made_of, strict=True)
        ):
            self._made = made_of, torus_of(self._hosts, self._quantity.metric)
        return self._made[1]

    # -- keys

    def action_graph(self, step: int) -> None:
        """Color the chips by the next quantity."""
        self._quantity = stepped(OF_TORUS, self._quantity, step)
        self.draw()

    def action_step(self, step: int) -> None:
        """Show the next slice."""
        hosts = () if self.scene.snapshot is None else self.scene.snapshot.hosts
        slices = sorted({h.slice for h in hosts if h.slice})
        if slices:
            self._slice = stepped(slices, self._slice, step)
            self._view.scroll_to_cursor()
            self.top = 0
            self.draw()

    def action_chip(self, across: int, down: int) -> None:
        """Move the cursor to a neighbor on the screen."""
        if self._view.step(across, down):
            self.draw()

    def on_click(self, event: Click) -> None:
        if self._view.click(event.screen_y - self.lines.region.y, event.screen_x):
            self.draw()
            if event.chain == 2:
                self.action_enter()

    def action_enter(self) -> None:
        """Open the host of the selected chip."""
        place = self._view.key
        if isinstance(place, tuple):
            keys = [h.key for h in self._hosts]
            self.app.open_host(place[0], keys)  # type: ignore[attr-defined]
