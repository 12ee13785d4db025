"""The dashboard: a Snapshot on a screen, and keys."""

from __future__ import annotations

from tpusmi.tui.feed import Feed, Options

__all__ = ["Feed", "Options", "run"]


def run(feed: Feed, options: Options) -> int:
    """Show the dashboard on this terminal until it is quit; the exit code.

    stdin and stdout must be the terminal.
    """
    import gc
    import sys

    # Textual draws on stderr, which may be a log: it gets the stream that is a terminal.
    sys.__stderr__ = sys.__stdout__  # type: ignore[misc]

    # Loading Textual makes many objects and no garbage: looking for some costs time.
    gc.disable()
    from tpusmi.tui.app import Dashboard
    from tpusmi.tui.draw.themes import shown_here

    app = Dashboard(feed, options._replace(theme=shown_here(options.theme)))
    app.run()
    return app.return_code or 0
