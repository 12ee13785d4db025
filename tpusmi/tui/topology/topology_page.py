"""The topology page: chips at their places in the torus of the slice, and their links."""

from __future__ import annotations

from textual.events import Click

from tpusmi.model import DeviceKey, Process, Snapshot
from tpusmi.model.torus import Torus, TorusChip
from tpusmi.report.torus_figures import TORUS_METRICS
from tpusmi.report.torus_of import SILENT, STRAGGLES, WARNED, of_snapshot
from tpusmi.tui.draw.heat_map import HeatStyle
from tpusmi.tui.draw.look import Row
from tpusmi.tui.keys import key
from tpusmi.tui.page import ScrollPage, stepped
from tpusmi.tui.scene import Scene
from tpusmi.tui.topology import planes
from tpusmi.tui.topology.chip_moves import nearest, step_to
from tpusmi.tui.topology.planes import Drawing

KEYS = [
    key("enter", "enter", "Open", "topology-open", "Open the page of the selected device", "Enter"),
    key("g", "quantity", "Quantity", "topology-quantity", "Color by the next quantity", "g"),
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
NO_PAST = "The past of other hosts is not kept: n returns to now."
ABOUT_LINES = 3
"""The chip under the cursor: its name, and its figures."""
MEANINGS = {STRAGGLES: "the others wait for it", SILENT: "not heard of", WARNED: "a warning"}
ELSEWHERE = "That device is on another host: only devices of this one have a page here"


class TopologyPage(ScrollPage):
    """The torus of one slice or job."""

    NAME = "topology"
    KEYS = KEYS
    BINDINGS = [*KEYS]  # noqa: RUF012  # Textual's name and type

    def __init__(self, scene: Scene) -> None:
        super().__init__(scene)
        self._metric = TORUS_METRICS[0]
        self._heat = HeatStyle(scene.look)
        self._number = 0
        """Which torus is shown."""
        self._key: object = scene.device_key
        """The chip under the cursor."""
        self._tori: tuple[Torus, ...] = ()
        self._drawing = Drawing([], {}, 1)
        self._follows = True
        """The next drawing brings the cursor into view."""

    @property
    def targets(self) -> tuple[Process, ...]:
        """The owners of the selected device: no other host's can be ended here."""
        snapshot, chip = self.scene.snapshot, self._chip
        if snapshot is None or chip is None:
            return ()
        owners = next((d.owners for d in snapshot.devices if d.key == chip.key), ())
        return tuple(p for p in snapshot.processes if p.key in owners)

    @property
    def _chip(self) -> TorusChip | None:
        """The chip under the cursor."""
        return next((c for t in self._tori for c in t.chips if c.key == self._key), None)

    def copied(self) -> str:
        chip = self._chip
        return "" if chip is None else f"{chip.host} {chip.name}"

    def draw_body(self, snapshot: Snapshot) -> None:
        self._tori = of_snapshot(snapshot, self._metric.name)
        self._number = min(self._number, len(self._tori) - 1)
        torus = self._tori[self._number]
        if torus.chips and all(chip.key != self._key for chip in torus.chips):
            self._key = next((c.key for c in torus.chips if isinstance(c.key, DeviceKey)), None)
            self._key = torus.chips[0].key if self._key is None else self._key
        width, height = self.lines.size
        head, foot = self._head(torus, width), self._foot(torus, width)
        room = max(0, height - len(head) - len(foot))
        body = self._body(torus, width, room)
        self._clamp(len(body), room)
        visible = body[self.top : self.top + room]
        below = len(body) - self.top - len(visible)
        if below > 0 and visible:
            text = f"{self.look.glyphs.down} {below + 1} more lines (PgDn)"
            visible[-1] = self.look.line((text, "dim"))
        visible += [()] * (room - len(visible))
        self.lines.show([*head, *visible, *foot][:height])

    def _clamp(self, lines: int, room: int) -> None:
        """Scroll no further than to the end, and to the cursor if it has moved."""
        self.screen_lines = max(1, room - 1)
        spot = self._drawing.spots.get(self._key)
        if self._follows and spot is not None:
            last = spot[0] + 3  # with what is below it, and the line that says that there is more
            self.top = min(max(self.top, last - room), max(0, spot[0] - 3))
        self._follows = False
        self.top = min(self.top, max(0, lines - room))

    def _head(self, torus: Torus, width: int) -> list[Row]:
        """Whose chips they are."""
        several = f"{self._number + 1} of {len(self._tori)}" if len(self._tori) > 1 else ""
        size = planes.size_text(torus.size)
        text = self.look.joined(part for part in (torus.title, size, several) if part)
        return [self.look.cell(text, width, "title")]

    def _foot(self, torus: Torus, width: int) -> list[Row]:
        """The chip under the cursor, and the scale of colors."""
        if not torus.chips:
            return []
        return [
            *self._about(width),
            self._heat.legend(
                f"{self._metric.title} (g: next)", width, cell_width=self._drawing.chip_width
            ),
        ]

    def _about(self, width: int) -> list[Row]:
        """The chip under the cursor, in as many lines for each chip."""
        chip, look = self._chip, self.look
        if chip is None:
            return [()] * ABOUT_LINES
        place = ",".join(map(str, chip.coords))
        name = look.line(
            (f"{chip.name} ({place})  {chip.host}", "bold"),
            (f"  {chip.mark} {MEANINGS[chip.mark]}" if chip.mark in MEANINGS else "", "bad"),
        )
        facts = look.wrapped(chip.facts, width, "plain")
        return [name, *facts[: ABOUT_LINES - 1], *[()] * (ABOUT_LINES - 1 - len(facts))]

    def _body(self, torus: Torus, width: int, room: int) -> list[Row]:
        """The planes, what links look like, and what is missing."""
        look = self.look
        tail = [*planes.legend(look, torus, width), *planes.notes(look, torus, width)]
        if self.scene.back_s:
            tail += look.wrapped(NO_PAST, width, "dim")
        least = len(tail) if len(tail) < room // 2 else 0
        self._drawing = planes.drawn(look, torus, width, self._key, room - least)
        return [*self._drawing.rows, *tail]

    # -- keys

    def action_quantity(self) -> None:
        """Color the chips by the next quantity."""
        self._metric = stepped(TORUS_METRICS, self._metric, 1)
        self.draw()

    def action_step(self, step: int) -> None:
        """Show the torus that many further on."""
        if self._tori:
            self._number = (self._number + step) % len(self._tori)
            self.top, self._follows = 0, True
            self.draw()

    def action_chip(self, across: int, down: int) -> None:
        """Move the cursor to a neighbor on the screen."""
        key = step_to(self._drawing.spots, self._key, across, down)
        if key is not None:
            self._choose(key)

    def on_click(self, event: Click) -> None:
        head = 1
        at = event.screen_y - self.lines.region.y - head + self.top, event.screen_x
        key = nearest(self._drawing.spots, at, self._drawing.chip_width)
        if key is not None:
            self._choose(key)
            if event.chain == 2:
                self.action_enter()

    def _choose(self, key: object) -> None:
        self._key, self._follows = key, True
        if isinstance(key, DeviceKey):
            self.scene.device_key = key
        self.draw()

    def action_enter(self) -> None:
        """Open the page of the selected device."""
        chip = self._chip
        if chip is not None and isinstance(chip.key, DeviceKey):
            self.scene.device_key = chip.key
            self.app.action_open("device")  # type: ignore[attr-defined]
        elif chip is not None:
            self.app.say(ELSEWHERE)  # type: ignore[attr-defined]
