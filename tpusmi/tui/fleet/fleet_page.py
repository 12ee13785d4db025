"""What every page of a fleet is: header, body, footer, and the keys."""

from __future__ import annotations

import shlex

from textual.binding import Binding

from tpusmi.text import clean
from tpusmi.tui.base_page import BasePage, ScrollingPage
from tpusmi.tui.fleet import fleet_chrome
from tpusmi.tui.fleet.fleet_scene import FleetScene
from tpusmi.tui.fleet_keys import FIRST_KEYS, LAST_KEYS
from tpusmi.tui.keymap import remapped

NAME_MOST = 255
"""The longest name of a host that is copied."""


class FleetPage(BasePage):
    """A page about the newest answer."""

    scene: FleetScene

    def __init__(self, scene: FleetScene) -> None:
        super().__init__(scene)
        self.scene = scene

    @property
    def page_title(self) -> str:
        """What the page is about, for the header."""
        return ""

    @property
    def host_name(self) -> str:
        """The host that is selected; empty for none."""
        return ""

    @property
    def bindings(self) -> list[Binding]:
        return remapped([*FIRST_KEYS, *self.KEYS, *LAST_KEYS], self.scene.options.keys)

    def draw_header(self) -> None:
        row = fleet_chrome.header(self.scene, self.page_title, self.size.width)
        self.header.show([row])

    def copied(self) -> str:
        return clean(self.host_name, NAME_MOST)

    def copied_ssh(self) -> str:
        """The command that leads to the selected host; empty for none."""
        return ssh_to(self.host_name)


def ssh_to(name: str) -> str:
    """`ssh NAME`, harmless to paste whatever the name is. Empty for one that no host can have."""
    name = clean(name, NAME_MOST)
    is_usual = name and not name.startswith("-") and " " not in name
    return f"ssh {shlex.quote(name)}" if is_usual else ""


class ScrollingFleetPage(ScrollingPage, FleetPage):
    """A page of lines that scroll."""

    @property
    def room(self) -> tuple[int, int]:
        """Columns and lines of the body."""
        return self.size.width, max(1, self.size.height - 2)
