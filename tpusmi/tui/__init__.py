"""The dashboard: a Snapshot on a screen, and keys."""

from __future__ import annotations

from tpusmi.tui.feed import Feed, Options

__all__ = ["Feed", "Options", "run"]


def run(feed: Feed, options: Options) -> int:
    """Show the dashboard on this terminal until it is quit; the exit code.

    Textual draws on stderr, so stdin, stdout and stderr must all be the terminal.
    """
    import gc

    # Loading Textual makes many objects and no garbage: looking for some costs time.
    gc.disable()
    from tpusmi.tui.app import Dashboard

    app = Dashboard(feed, options)
    app.run()
    return app.return_code or 0
