"""The dashboard on this terminal, fed by the collector of a host."""

from __future__ import annotations

import argparse
import os
import sys
from typing import TYPE_CHECKING, NamedTuple

from tpusmi.cli.exits import Exit
from tpusmi.cli.printing import users_asked_for
from tpusmi.cli.terminal import Looks
from tpusmi.cli.width import forget_exported_size
from tpusmi.collect import Collector, open_collector
from tpusmi.model import History, Host, Snapshot
from tpusmi.report.select import Wanted, recent, selected
from tpusmi.settings import Settings
from tpusmi.threads import WHERE, can_start

if TYPE_CHECKING:
    from tpusmi.tui import Options


THREADS = 9
"""One for each source, two of Textual's, and two of ours."""


class _Feed(NamedTuple):
    """The collector's newest snapshot, cut down to what was asked for."""

    collector: Collector
    history: History
    wanted: Wanted

    def snapshot(self) -> Snapshot:
        return recent(selected(self.collector.snapshot(), self.wanted))


def run(host: Host, options: argparse.Namespace, looks: Looks, wanted: Wanted) -> int:
    """Show the dashboard until it is quit; the exit code."""
    from tpusmi.tui import UnusableError, run

    if not can_start(THREADS):
        sys.stderr.write(
            f"tpusmi: the dashboard needs {THREADS} threads, and so many cannot be started: "
            f"{WHERE}; tpusmi -1 needs fewer\n"
        )
        return Exit.SOURCE_FAILED
    settings: Settings = options.settings
    if settings.only_user and not users_asked_for(options):
        wanted = wanted._replace(users=(settings.only_user,))
    collector = open_collector(host, True, settings.interval_s, options.programs, detailed=True)
    collector.start()
    # It is the theme that decides on colours. Textual would take an empty one for a wish, too.
    os.environ.pop("NO_COLOR", None)
    forget_exported_size()
    try:
        # Processes are filtered by a text on the screen, where a person can do away with it.
        feed = _Feed(collector, collector.history, wanted._replace(text=""))
        return run(feed, _tui_options(host, options, looks)._replace(filter=wanted.text))
    except UnusableError as error:
        if options.debug:
            raise
        sys.stderr.write(f"tpusmi: {error}\n")
        return Exit.NOTHING_HERE
    finally:
        collector.stop()


def _tui_options(host: Host, options: argparse.Namespace, looks: Looks) -> Options:
    from tpusmi.tui import Options

    settings: Settings = options.settings
    # To name a theme on the command line is to ask for colours.
    color = looks.color or (options.theme is not None and not options.no_color)
    return Options(
        interval_s=settings.interval_s,
        ascii=looks.ascii_only or settings.ascii,
        color=color,
        host=None if options.readonly else host,
        keys=settings.keys,
        theme=settings.theme,
        colors=settings.colors,
        view=settings.view,
    )
