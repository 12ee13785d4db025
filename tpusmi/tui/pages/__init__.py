"""The pages of the dashboard, one file each."""

from __future__ import annotations

from importlib import import_module

from tpusmi.tui.page import Page
from tpusmi.tui.scene import Scene

NAMES = {"device": "DevicePage", "memory": "MemoryPage", "job": "JobPage"}
"""Those that are opened from the main page, each loaded when it is first opened."""


def opened(name: str, scene: Scene) -> Page:
    """A page by its name. KeyError when there is none."""
    found = getattr(import_module(f"{__name__}.{name}"), NAMES[name])
    page: Page = found(scene)
    return page
