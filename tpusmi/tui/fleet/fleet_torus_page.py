"""The topology page of a fleet: the chips of one slice at their places, and their links."""

from __future__ import annotations

from tpusmi.fleet.fleet_figures import FleetHost
from tpusmi.fleet.report.fleet_torus import torus_of
from tpusmi.model.torus import Torus
from tpusmi.text import clean
from tpusmi.tui.draw.sorting import stepped
from tpusmi.tui.fleet.fleet_page import ScrollingFleetPage
from tpusmi.tui.fleet.fleet_scene import FleetScene
from tpusmi.tui.fleet_keys import TORUS
from tpusmi.tui.topology.torus_page import TorusPage


class FleetTorusPage(TorusPage, ScrollingFleetPage):
    """The slice of a host; of a host without one, its own chips."""

    SILENT = "down"
    KEYS = TORUS
    BINDINGS = [*TORUS]  # noqa: RUF012  # Textual's name and type

    def __init__(self, scene: FleetScene, host: FleetHost) -> None:
        super().__init__(scene)
        self._slice = host.slice
        self._host_key = host.key
        self.quantity = scene.quantity
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
        chip = self.view.chip
        return "" if chip is None else chip.host

    def draw_shown(self) -> None:
        torus = self._torus()
        self.show_torus(torus, (torus.title or self.page_title,), self.room)

    def _torus(self) -> Torus:
        """The torus of the newest answer, made once for it."""
        made_of = self.scene.snapshot, self._slice, self.quantity
        if self._made is None or any(
            a is not b for a, b in zip(self._made[0], made_of, strict=True)
        ):
            is_partial = made_of[0] is not None and made_of[0].is_partial
            torus = torus_of(self._hosts, self.quantity.metric, is_partial=is_partial)
            self._made = made_of, torus
        return self._made[1]

    # -- keys

    def action_step(self, step: int) -> None:
        """Show the next slice."""
        hosts = () if self.scene.snapshot is None else self.scene.snapshot.hosts
        slices = sorted({h.slice for h in hosts if h.slice})
        if slices:
            self._slice = stepped(slices, self._slice, step)
            self.show_other()

    def action_enter(self) -> None:
        """Open the host of the selected chip."""
        place = self.view.key
        if isinstance(place, tuple):
            keys = [h.key for h in self._hosts]
            self.app.open_host(place[0], keys)  # type: ignore[attr-defined]
