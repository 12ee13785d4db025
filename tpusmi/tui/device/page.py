"""The device page: one device, its history, and everything measured of it."""

from __future__ import annotations

from collections.abc import Iterable

from textual.geometry import Size

from tpusmi.model import Process, Snapshot
from tpusmi.tui.device.lines import draw
from tpusmi.tui.draw.graphs import Drawn, filed
from tpusmi.tui.draw.quantity import GRAPHED
from tpusmi.tui.main.arrange import AROUND
from tpusmi.tui.sheet import Sheet, sheet_keys, stepped

KEYS = sheet_keys("device", "device")


class DevicePage(Sheet):
    """One device."""

    NAME = "device"
    KEYS = KEYS
    BINDINGS = [*KEYS]  # noqa: RUF012  # Textual's name and type

    @property
    def targets(self) -> tuple[Process, ...]:
        """Who has the device, and not who was chosen elsewhere."""
        return self.scene.owners

    def graphed(self, snapshot: Snapshot) -> tuple[object, Iterable[Drawn]]:
        """The device goes by its number: it gets another key when a job's agent tells of it."""
        device = self.scene.device
        if device is None:
            return None, ()
        return device.index, ((filed(snapshot, device, name), name) for name in GRAPHED)

    def draw_body(self, snapshot: Snapshot) -> None:
        device = self.scene.device
        if device is None:
            self.lines.show([self.look.line(("There is no device on this host.", "warn"))])
            return
        if device.owners and self.scene.process_key not in device.owners:
            self.scene.process_key = device.owners[0]  # whose job the job page is to show
        size = Size(self.size.width, max(0, self.size.height - AROUND))
        found = draw(self.scene, snapshot, device, self.span_s(snapshot), self.top, size)
        self.top, self.screen_lines = found.scrolled, found.page
        self.lines.show(found.rows)

    def action_step(self, step: int) -> None:
        """Show the device that many further on."""
        device, s = self.scene.device, self.scene.snapshot
        if device is not None and s is not None:
            self.scene.device_key = stepped([d.key for d in s.devices], device.key, step)
            self.draw()
