"""The memory page."""

from __future__ import annotations

from collections.abc import Iterable

from tpusmi.model import Snapshot
from tpusmi.tui.keys import key
from tpusmi.tui.lines import Lines
from tpusmi.tui.page import Page
from tpusmi.tui.scene import Scene

KEYS = [
    key("tab", "step(1)", "Next", "memory-next", "The next one", "Tab"),
    key("shift+tab", "step(-1)", "Before", "memory-before", "The one before"),
]


class MemoryPage(Page):
    """One memory."""

    NAME = "memory"
    KEYS = KEYS
    BINDINGS = [*KEYS]  # noqa: RUF012  # Textual's name and type

    def __init__(self, scene: Scene) -> None:
        super().__init__(scene)
        self.lines = Lines(self.look, id="memory")

    def body(self) -> Iterable[Lines]:
        self.lines.styles.height = "1fr"
        return (self.lines,)

    def draw_body(self, snapshot: Snapshot) -> None:
        self.lines.show([])

    def action_step(self, step: int) -> None:
        """Show the next one."""
        self.draw()
