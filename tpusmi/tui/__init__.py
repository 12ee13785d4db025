"""The dashboard: a Snapshot on a screen, and keys."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from tpusmi.text import clean
from tpusmi.tui.feed import Feed, Options

if TYPE_CHECKING:
    from tpusmi.tui.app import Dashboard

__all__ = ["Feed", "Options", "UnusableError", "run"]

OLDEST, UNTIL = (8, 2), (9, 0)
"""Versions of Textual: the first that works, and the first that is not known to work."""
CURE = (
    "install tpusmi into an environment of its own (uv tool install, or pipx install); "
    "tpusmi -1 prints one table without it"
)


class UnusableError(Exception):
    """Why the dashboard cannot be drawn, in a sentence."""


def run(feed: Feed, options: Options) -> int:
    """Show the dashboard on this terminal until the user quits; returns the exit code.

    stdin and stdout must be the terminal. Raises UnusableError before anything is drawn.
    """
    import gc
    import sys

    # Textual draws on stderr, which may be a log: it gets the stream that is a terminal.
    sys.__stderr__ = sys.__stdout__  # type: ignore[misc]

    # Loading Textual makes many objects and no garbage: looking for some costs time.
    gc.disable()
    dashboard = dashboard_class()
    from tpusmi.tui.draw.themes import colors_here, shown_here
    from tpusmi.tui.terminal import end_with_terminal, restored

    options = options._replace(theme=shown_here(options.theme), terminal_colors=colors_here())
    app = dashboard(feed, options)
    end_with_terminal()
    with restored():
        app.run()
    return app.return_code or 0


def dashboard_class() -> type[Dashboard]:
    """The dashboard's class. Raises UnusableError if the installed Textual cannot run it."""
    version = _textual_version()
    numbers = tuple(int(part) for part in version.split(".")[:2] if part.isdecimal())
    if version and not OLDEST <= numbers < UNTIL:
        raise UnusableError(
            f"textual {clean(version, 20)} is installed here, and the dashboard needs "
            f"{'.'.join(map(str, OLDEST))} or later, before {UNTIL[0]}: {CURE}"
        )
    try:
        from tpusmi.tui.app import Dashboard
    except Exception as error:
        why = clean(f"{type(error).__name__}: {error}", 160)
        raise UnusableError(f"the dashboard cannot be loaded ({why}): {CURE}") from error
    return Dashboard


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
