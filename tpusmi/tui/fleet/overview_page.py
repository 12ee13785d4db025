"""The first page of a fleet: everything, by job, slice or host."""

from __future__ import annotations

from tpusmi.fleet.groups.group_members import GROUPINGS
from tpusmi.text import counted
from tpusmi.tui.draw.sorting import stepped
from tpusmi.tui.fleet.fleet_scene import ALL, FleetScene
from tpusmi.tui.fleet.fleet_table_page import FleetTablePage
from tpusmi.tui.fleet_keys import OVERVIEW


class OverviewPage(FleetTablePage):
    """All hosts."""

    KEYS = OVERVIEW
    BINDINGS = [*OVERVIEW]  # noqa: RUF012  # Textual's name and type
    NAME = "fleet"

    def __init__(self, scene: FleetScene) -> None:
        super().__init__(scene, ALL, heat=scene.options.heat)

    @property
    def by(self) -> str:
        return self.scene.by

    @property
    def page_title(self) -> str:
        several = len(self.scene.rows(self.by))
        return f"by {self.by}: {several}" if self.scene.snapshot is not None else ""

    def action_group(self, step: int) -> None:
        """Group by the next of job, slice and host."""
        self.scene.by = stepped(GROUPINGS, self.by, step)
        self.app.say(f"{counted(len(self.rows), self.by)}")  # type: ignore[attr-defined]
        self.draw()
