"""Whether the Textual that is installed here is one that the dashboard can be drawn with."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from tpusmi.text import clean

if TYPE_CHECKING:
    from tpusmi.tui.app import Dashboard

OLDEST, UNTIL = (8, 2), (9, 0)
CURE = (
    "install tpusmi into an environment of its own (uv tool install, or pipx install); "
    "tpusmi -1 prints one table without it"
)


class UnusableError(Exception):
    """Why no dashboard can be drawn, in a sentence."""


def dashboard_class() -> type[Dashboard]:
    """The dashboard's class. Raises UnusableError: others decide what an environment contains."""
    version = _version()
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


def _version() -> str:
    """Of Textual, by the name of its directory; empty where that is not known.

    importlib.metadata would take as long as all of a one-shot command.
    """
    import importlib.util

    try:
        found = importlib.util.find_spec("textual")
        places = (found.submodule_search_locations if found else None) or ()
        for place in places:
            for name in os.listdir(os.path.dirname(place)):
                if name.startswith("textual-") and name.endswith(".dist-info"):
                    return name.removeprefix("textual-").removesuffix(".dist-info")
    except (ImportError, ValueError, OSError):
        pass
    return ""
