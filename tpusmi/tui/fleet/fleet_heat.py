"""All chips of a fleet as a heat map, those of a row of the table together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tpusmi.fleet.fleet_figures import HostState, shown_name
from tpusmi.fleet.groups import totals
from tpusmi.fleet.groups.group_members import Member
from tpusmi.fleet.report.device_marks import DeviceMarks
from tpusmi.report.concerns import marks_in_words
from tpusmi.report.quantities import Quantity
from tpusmi.tui.draw.heat_cells import HeatCell
from tpusmi.tui.draw.heat_list import HeatMap
from tpusmi.tui.fleet.fleet_rows import FleetRow
from tpusmi.tui.fleet.fleet_scene import FleetScene

Place = tuple[str, str]
"""The key of a host, and the name of a device; empty for a host of which no device is known."""


class FleetHeat(HeatMap):
    """A cell for each device, in the order of the table."""

    CUTS_NAMES = True

    def __init__(self, scene: FleetScene) -> None:
        super().__init__(scene.look, "heat")
        self._scene = scene
        self._labels: dict[object, str] = {}
        self._made: tuple[Sequence[FleetRow], Quantity, list[HeatCell]] | None = None

    @property
    def host_key(self) -> str:
        """The host of the selected cell; empty without one."""
        place = self.cursor
        return place[1][0] if isinstance(place, tuple) else ""

    def show_rows(self, rows: Sequence[FleetRow]) -> None:
        """Show the devices of these rows: made again only for another list of them."""
        quantity = self._scene.quantity
        if self._made is None or self._made[0] is not rows or self._made[1] is not quantity:
            self._labels.clear()
            self._made = rows, quantity, [*self._all_cells(rows)]
        cells = self._made[2]
        notes = marks_in_words((cell.mark for cell in cells), silent="down")
        if cells and self.cursor not in self._labels:
            self.cursor = cells[0].key
        self.show_cells(cells, quantity.map_titles, lambda cell: self._labels[cell.key], notes)

    def _all_cells(self, rows: Sequence[FleetRow]) -> Iterator[HeatCell]:
        for row in rows:
            slow = {straggler.host for straggler in row.group.stragglers}
            for member in row.group.members:
                yield from self._cells(row, member, member.host.key in slow)

    def _cells(self, row: FleetRow, m: Member, slow: bool) -> Iterator[HeatCell]:
        is_old = m.host.state != HostState.LIVE
        marks = DeviceMarks(m.host, m.notices, slow)
        for d in m.devices or (None,):
            key = (row.key, (m.host.key, "" if d is None else d.name))
            self._labels[key] = row.title
            ratio = None if d is None else totals.ratio(d, self._scene.quantity.metric)
            yield HeatCell(
                key=key,
                name=f"{m.host.name} {m.host.state if d is None else shown_name(d)}",
                ratio=ratio,
                mark=marks.of(d),
                is_old=is_old,
            )
