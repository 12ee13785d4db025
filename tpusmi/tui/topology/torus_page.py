"""What both topology pages are, of a host and of a fleet: a torus, and a cursor on its chips."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual.events import Click

from tpusmi.model.torus import Torus
from tpusmi.report.quantities import OF_TORUS
from tpusmi.tui.base_page import ScrollingPage
from tpusmi.tui.base_scene import BaseScene
from tpusmi.tui.draw.look import Row
from tpusmi.tui.draw.sorting import stepped
from tpusmi.tui.topology import planes
from tpusmi.tui.topology.torus_view import TorusView


class TorusPage(ScrollingPage):
    """A page that draws one torus with `show_torus`."""

    NAME = "topology"
    SILENT: ClassVar = "silent"
    """What a host that does not report is called."""

    def __init__(self, scene: BaseScene) -> None:
        super().__init__(scene)
        self.view = TorusView(scene.look, self.SILENT)
        self.quantity = OF_TORUS[0]

    def show_torus(
        self, torus: Torus, head: Sequence[str], room: tuple[int, int], tail: Sequence[Row] = ()
    ) -> None:
        """Draw the torus in that room, below its title, size and the other parts of the `head`."""
        title, *more = head
        parts = (title, planes.size_text(torus.size), *more)
        text = self.look.joined(part for part in parts if part)
        self.view.top = self.top
        rows = self.view.lines(torus, text, self.quantity, room, tail)
        self.top, self.screen_lines = self.view.top, self.view.screen_lines
        self.lines.show(rows)

    def show_other(self) -> None:
        """Draw another torus, from its top."""
        self.top = 0
        self.view.scroll_to_cursor()
        self.draw()

    def chosen(self) -> None:
        """Take in that the cursor has moved."""
        self.draw()

    # -- keys

    def action_graph(self, step: int) -> None:
        """Color the chips by the next quantity."""
        self.quantity = stepped(OF_TORUS, self.quantity, step)
        self.draw()

    def action_chip(self, across: int, down: int) -> None:
        """Move the cursor to a neighbor on the screen."""
        if self.view.step(across, down):
            self.chosen()

    def on_click(self, event: Click) -> None:
        if self.view.click(event.screen_y - self.lines.region.y, event.screen_x):
            self.chosen()
            if event.chain == 2:
                self.action_enter()

    def action_enter(self) -> None:
        """Open the page of what is under the cursor."""
        raise NotImplementedError
