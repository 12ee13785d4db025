"""The dashboard: a Snapshot on a screen, and keys."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from tpusmi.text import clean
from tpusmi.tui.feed import Feed, Options

if TYPE_CHECKING:
    from textual.app import App

    from tpusmi.fleet.fleet_source import FleetSource
    from tpusmi.tui.app import Dashboard
    from tpusmi.tui.fleet.fleet_app import FleetDashboard
    from tpusmi.tui.fleet.fleet_options import FleetOptions

__all__ = ["Feed", "Options", "UnusableError", "run", "run_fleet"]

AnyClass = TypeVar("AnyClass")

OLDEST, UNTIL = (8, 2), (9, 0)
"""Versions of Textual: the first that works, and the first that is not known to work."""
CURE = "install tpusmi into an environment of its own (uv tool install, or pipx install)"


class UnusableError(Exception):
    """Why the dashboard cannot be drawn, in a sentence."""


def run(feed: Feed, options: Options) -> int:
    """Show the dashboard on this terminal until the user quits; returns the exit code.

    stdin and stdout must be the terminal. Raises UnusableError before anything is drawn.
    """

    def make() -> App[None]:
        dashboard = dashboard_class()
        return dashboard(feed, options._replace(**_shown_here(options.theme)))

    return _run(make)


def run_fleet(source: FleetSource, options: FleetOptions) -> int:
    """The same for the dashboard of a fleet. The source stays open."""
    from tpusmi.fleet.read_ahead import ReadAhead

    def make() -> App[None]:
        ahead = ReadAhead(source, options.at_s)  # servers take as long as Textual does
        dashboard = fleet_dashboard_class()
        return dashboard(ahead, options._replace(**_shown_here(options.theme)))

    return _run(make)


def _run(make: Callable[[], App[None]]) -> int:
    import gc
    import sys

    # Textual draws on stderr, which may be a log: it gets the stream that is a terminal.
    sys.__stderr__ = sys.__stdout__  # type: ignore[misc]

    # Loading Textual makes many objects and no garbage: looking for some costs time.
    gc.disable()
    app = make()
    from tpusmi.tui.terminal import end_with_terminal, restored

    end_with_terminal()
    with restored():
        app.run()
    return app.return_code or 0


def _shown_here(theme: str | None) -> dict[str, Any]:
    """The options that depend on this terminal."""
    from tpusmi.tui.draw.themes import colors_here, shown_here

    return {"theme": shown_here(theme), "terminal_colors": colors_here()}


def dashboard_class() -> type[Dashboard]:
    """The dashboard's class. Raises UnusableError if the installed Textual cannot run it."""

    def load() -> type[Dashboard]:
        from tpusmi.tui.app import Dashboard

        return Dashboard

    return _loaded(load, "tpusmi -1")


def fleet_dashboard_class() -> type[FleetDashboard]:
    """The class of the dashboard of a fleet. Raises UnusableError likewise."""

    def load() -> type[FleetDashboard]:
        from tpusmi.tui.fleet.fleet_app import FleetDashboard

        return FleetDashboard

    return _loaded(load, "tpusmi fleet --once")


def _loaded(load: Callable[[], AnyClass], plain: str) -> AnyClass:
    """`plain` is the command that prints the same without Textual."""
    cure = f"{CURE}; {plain} prints one table without it"
    version = _textual_version()
    numbers = tuple(int(part) for part in version.split(".")[:2] if part.isdecimal())
    if version and not OLDEST <= numbers < UNTIL:
        raise UnusableError(
            f"textual {clean(version, 20)} is installed here, and the dashboard needs "
            f"{'.'.join(map(str, OLDEST))} or later, before {UNTIL[0]}: {cure}"
        )
    try:
        return load()
    except Exception as error:
        why = clean(f"{type(error).__name__}: {error}", 160)
        raise UnusableError(f"the dashboard cannot be loaded ({why}): {cure}") from error


def _textual_version() -> str:
    """The version in the name of Textual's metadata directory; empty if it is not known.

    importlib.metadata would take as long as all of a one-shot command.
    """
    import importlib.util

    try:
        spec = importlib.util.find_spec("textual")
        places = (spec.submodule_search_locations if spec else None) or ()
        for place in places:
            for name in os.listdir(os.path.dirname(place)):
                if name.startswith("textual-") and name.endswith(".dist-info"):
                    return name.removeprefix("textual-").removesuffix(".dist-info")
    except (ImportError, ValueError, OSError):
        pass
    return ""
