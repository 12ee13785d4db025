"""The device page: one device, its history, and everything measured of it."""

from __future__ import annotations

from collections.abc import Iterable

from textual.geometry import Size

from tpusmi.model import Process, Snapshot
from tpusmi.tui.device.graphs import SPANS_S
from tpusmi.tui.device.lines import draw
from tpusmi.tui.draw.lines import Lines
from tpusmi.tui.keys import key
from tpusmi.tui.main.arrange import AROUND
from tpusmi.tui.page import Page
from tpusmi.tui.scene import Scene

SCROLL = "Scroll the values of the device"
STEP = "The next device, and the one before"
WHEEL_LINES = 3

KEYS = [
    key("tab,down", "step(1)", "Next", "device-next", STEP, "Tab"),
    key("shift+tab,up", "step(-1)", "Before", "device-before", STEP),
    key("w", "span", "Span", "device-span", "Graphs of the last 10, 5 or 1 minutes", "w"),
    key("pagedown", "scroll_facts(1)", "Page down", "device-down", SCROLL),
    key("pageup", "scroll_facts(-1)", "Page up", "device-up", SCROLL),
]


class DevicePage(Page):
    """One device."""

    NAME = "device"
    KEYS = KEYS
    BINDINGS = [*KEYS]  # noqa: RUF012  # Textual's name and type

    def __init__(self, scene: Scene) -> None:
        super().__init__(scene)
        self.lines = Lines(self.look, id="device")
        self._span = 0
        self._scrolled, self._page = 0, 1

    def body(self) -> Iterable[Lines]:
        self.lines.styles.height = "1fr"
        return (self.lines,)

    @property
    def targets(self) -> tuple[Process, ...]:
        """Who has the device, and not who was chosen elsewhere."""
        d, s = self.scene.device, self.scene.newest
        return () if d is None or s is None else tuple(p for p in s.processes if p.key in d.owners)

    def draw_body(self, snapshot: Snapshot) -> None:
        device = self.scene.device
        if device is None:
            self.lines.show([self.look.line(("There is no device on this host.", "warn"))])
            return
        if device.owners and self.scene.process_key not in device.owners:
            self.scene.process_key = device.owners[0]  # whose job the job page is to show
        size = Size(self.size.width, max(0, self.size.height - AROUND))
        found = draw(self.scene, snapshot, device, SPANS_S[self._span], self._scrolled, size)
        self._scrolled, self._page = found.scrolled, found.page
        self.lines.show(found.rows)

    # -- keys

    def action_step(self, step: int) -> None:
        """Show the device that many further on; behind the last comes the first."""
        device, s = self.scene.device, self.scene.snapshot
        if device is None or s is None:
            return
        keys = [d.key for d in s.devices]
        self.scene.device_key = keys[(keys.index(device.key) + step) % len(keys)]
        self.draw()

    def action_span(self) -> None:
        """Draw another span of time."""
        self._span = (self._span + 1) % len(SPANS_S)
        self.draw()

    def action_scroll_facts(self, pages: int) -> None:
        """Scroll the values by so many pages."""
        self._scroll(pages * self._page)

    def on_mouse_scroll_down(self) -> None:
        self._scroll(WHEEL_LINES)

    def on_mouse_scroll_up(self) -> None:
        self._scroll(-WHEEL_LINES)

    def _scroll(self, lines: int) -> None:
        self._scrolled += lines
        self.draw()
