"""The list of pages, and every key that works on each."""

from __future__ import annotations

from importlib import import_module

from textual.binding import Binding

from tpusmi.tui import fleet_keys
from tpusmi.tui.keys import EVERYWHERE, MAIN, beside
from tpusmi.tui.page import Page
from tpusmi.tui.scene import Scene

NAMES = {
    "device": "DevicePage",
    "memory": "MemoryPage",
    "job": "JobPage",
    "profile": "ProfilePage",
    "slice": "SlicePage",
    "topology": "TopologyPage",
}
"""Pages opened from the main page, each loaded when it is first opened."""


def keys_by_page() -> dict[str, list[Binding]]:
    """Every key that works on each page. Ids are of one binding each."""
    pages = {name: _page(name).KEYS for name in NAMES}
    return {
        name: [*beside(EVERYWHERE, keys), *keys] for name, keys in {"main": MAIN, **pages}.items()
    }


def every_key() -> list[Binding]:
    """Every binding of them, each once."""
    return list({b.id: b for keys in keys_by_page().values() for b in keys}.values())


def keys_by_fleet_page() -> dict[str, list[Binding]]:
    """Every key that works on each page of a fleet. A binding that a host's dashboard has as well
    has the same id and the same default there.
    """
    first, last = fleet_keys.FIRST_KEYS, fleet_keys.LAST_KEYS
    return {name: [*first, *keys, *last] for name, keys in fleet_keys.PAGES.items()}


def settable_keys() -> dict[str, list[Binding]]:
    """Every key that users may remap, by page."""
    return {**keys_by_page(), **keys_by_fleet_page()}


def opened(name: str, scene: Scene) -> Page:
    """A new page by its name. Raises KeyError for an unknown name."""
    return _page(name)(scene)


def _page(name: str) -> type[Page]:
    page: type[Page] = getattr(import_module(f"tpusmi.tui.{name}.{name}_page"), NAMES[name])
    return page
