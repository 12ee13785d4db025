"""The topology page: chips at their places in the torus of the slice, and their links."""

from __future__ import annotations

from tpusmi.model import DeviceKey, Process, Snapshot
from tpusmi.model.torus import Torus
from tpusmi.report.torus.snapshot_tori import of_snapshot
from tpusmi.tui.keys import SLICE, key
from tpusmi.tui.page import NO_PAST, ScrollPage
from tpusmi.tui.scene import Scene
from tpusmi.tui.topology.torus_page import TorusPage

KEYS = [
    key("enter", "enter", "Open", "topology-open", "Open the page of the selected device", "Enter"),
    key("g", "quantity", "Quantity", "topology-quantity", "Color by the next quantity", "g"),
    SLICE,
    key("tab", "step(1)", "Next", "topology-next", "Next slice or job", "Tab"),
    key("shift+tab", "step(-1)", "Before", "topology-before", "Previous slice or job"),
    key("up", "chip(0, -1)", "Up", "topology-up", "Move the cursor to the chip above"),
    key("down", "chip(0, 1)", "Down", "topology-down", "Move the cursor to the chip below"),
    key("left", "chip(-1, 0)", "Left", "topology-left", "Move the cursor to the chip at the left"),
    key("right", "chip(1, 0)", "Right", "topology-right", "Move the cursor to the right"),
    key("pagedown", "scroll(1)", "Further", "topology-page-down", "Scroll the page down"),
    key("pageup", "scroll(-1)", "Back", "topology-page-up", "Scroll the page up"),
    key("home", "jump(0)", "Top", "topology-top", "Scroll to the top of the page"),
    key("end", "jump(1)", "Bottom", "topology-bottom", "Scroll to the end of the page"),
]
ELSEWHERE = "That device is on another host: only devices of this one have a page here"


class TopologyPage(TorusPage, ScrollPage):
    """The torus of one slice or job."""

    KEYS = KEYS
    BINDINGS = [*KEYS]  # noqa: RUF012  # Textual's name and type

    def __init__(self, scene: Scene) -> None:
        super().__init__(scene)
        self.view.key = scene.device_key
        self._number: int | None = None
        """Which torus is shown; None before the first."""
        self._tori: tuple[Torus, ...] = ()
        self._drawn_of: tuple[Snapshot | None, str] = (None, "")
        """The moment and the quantity of the tori."""

    @property
    def targets(self) -> tuple[Process, ...]:
        """The owners of the selected device: no other host's can be ended here."""
        snapshot, chip = self.scene.snapshot, self.view.chip
        if snapshot is None or chip is None:
            return ()
        owners = next((d.owners for d in snapshot.devices if d.key == chip.key), ())
        return tuple(p for p in snapshot.processes if p.key in owners)

    def copied(self) -> str:
        chip = self.view.chip
        return "" if chip is None else f"{chip.host} {chip.name}"

    def draw_body(self, snapshot: Snapshot) -> None:
        drawn_of = snapshot, self.quantity.metric
        if any(a is not b for a, b in zip(drawn_of, self._drawn_of, strict=True)):
            self._drawn_of = drawn_of  # a key leaves it as it is
            self._tori = of_snapshot(*drawn_of)
        number = self._first() if self._number is None else self._number
        self._number = min(number, len(self._tori) - 1)
        torus = self._tori[self._number]
        size = self.lines.size
        tail = self.look.wrapped(NO_PAST, size.width, "dim") if self.scene.back_s else []
        several = f"{self._number + 1} of {len(self._tori)}" if len(self._tori) > 1 else ""
        self.show_torus(torus, (torus.title, several), size, tail)

    def _first(self) -> int:
        """The torus of the job that the user has chosen, else that of the selected device."""
        job, device = self.scene.slice_job, self.scene.device_key
        of_job = (n for n, t in enumerate(self._tori) if job is not None and t.job == job)
        of_device = (
            n for n, t in enumerate(self._tori) if any(chip.key == device for chip in t.chips)
        )
        return next(of_job, next(of_device, 0))

    # -- keys

    def action_quantity(self) -> None:
        """Color the chips by the next quantity."""
        self.action_graph(1)

    def action_step(self, step: int) -> None:
        """Show the torus that many further on."""
        if self._tori and self._number is not None:
            self._number = (self._number + step) % len(self._tori)
            self.scene.slice_job = self._tori[self._number].job
            self.show_other()

    def chosen(self) -> None:
        """Let the other pages show the device under the cursor."""
        if isinstance(self.view.key, DeviceKey):
            self.scene.device_key = self.view.key
        self.draw()

    def action_enter(self) -> None:
        """Open the page of the selected device."""
        chip = self.view.chip
        if chip is not None and isinstance(chip.key, DeviceKey):
            self.scene.device_key = chip.key
            self.app.action_open("device")  # type: ignore[attr-defined]
        elif chip is not None:
            self.app.say(ELSEWHERE)  # type: ignore[attr-defined]
