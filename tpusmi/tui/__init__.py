"""The dashboard: a Snapshot on a screen, and keys."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from tpusmi.tui.feed import Feed, Options
from tpusmi.tui.needed import UnusableError, dashboard_class

__all__ = ["Feed", "Options", "UnusableError", "run"]

LEAVE = b"\x1b[?1000;1002;1003;1004;1006;1015;2004l\x1b[?7h\x1b[?25h\x1b[?1049l"
"""No reports of the mouse, of focus and of pastes; wrapped lines, the cursor, the main screen."""


def run(feed: Feed, options: Options) -> int:
    """Show the dashboard on this terminal until it is quit; the exit code.

    stdin and stdout must be the terminal. Raises UnusableError before anything is drawn.
    """
    import gc
    import sys

    # Textual draws on stderr, which may be a log: it gets the stream that is a terminal.
    sys.__stderr__ = sys.__stdout__  # type: ignore[misc]

    # Loading Textual makes many objects and no garbage: looking for some costs time.
    gc.disable()
    dashboard = dashboard_class()
    from tpusmi.tui.draw.themes import shown_here
    from tpusmi.tui.leaving import end_with_terminal

    app = dashboard(feed, options._replace(theme=shown_here(options.theme)))
    end_with_terminal()
    with _given_back():
        app.run()
    return app.return_code or 0


@contextmanager
def _given_back() -> Iterator[None]:
    """A terminal that Textual could take only in part is given back all the same.

    It cannot be left without the threads that write to it and read from it.
    """
    import sys
    import termios

    before = termios.tcgetattr(sys.__stdin__) if sys.__stdin__ and sys.__stdin__.isatty() else None
    try:
        yield
    except RuntimeError:
        if before is not None and sys.__stdin__ is not None:
            termios.tcsetattr(sys.__stdin__, termios.TCSADRAIN, before)
            os.write(1, LEAVE)
        raise
