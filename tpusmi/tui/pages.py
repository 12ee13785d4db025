"""The pages of the dashboard, a folder each, and every key that works on them."""

from __future__ import annotations

from importlib import import_module

from textual.binding import Binding

from tpusmi.tui.keys import EVERYWHERE, MAIN
from tpusmi.tui.page import Page
from tpusmi.tui.scene import Scene

NAMES = {"device": "DevicePage", "memory": "MemoryPage", "job": "JobPage"}
"""Those that are opened from the main page, each loaded when it is first opened."""


def keys_by_page() -> dict[str, list[Binding]]:
    """Every key that works on each page. Ids are of one binding each."""
    pages = {name: _page(name).KEYS for name in NAMES}
    return {name: [*EVERYWHERE, *keys] for name, keys in {"main": MAIN, **pages}.items()}


def every_key() -> list[Binding]:
    """All that a person may give other keys, each once."""
    return list({b.id: b for keys in keys_by_page().values() for b in keys}.values())


def opened(name: str, scene: Scene) -> Page:
    """A page by its name. KeyError when there is none."""
    return _page(name)(scene)


def _page(name: str) -> type[Page]:
    found: type[Page] = getattr(import_module(f"tpusmi.tui.{name}.{name}_page"), NAMES[name])
    return found
