"""The dashboard, fed by the collector of a host: on this terminal, or behind a browser's tab.

`tpusmi serve-tui` runs `python -m tpusmi.cli.dashboard` for a tab, with pipes as its terminal. The
environment makes it speak the protocol of textual-serve: Textual reads its driver from there.
"""

from __future__ import annotations

import argparse
import os
import sys
from typing import TYPE_CHECKING, NamedTuple

from tpusmi.cli.config import saved
from tpusmi.cli.exits import Exit, talk
from tpusmi.cli.looks import Looks
from tpusmi.cli.printing import selection_of, users_asked_for
from tpusmi.collect import Collector, open_collector
from tpusmi.interpreter import WHERE, can_start
from tpusmi.model import History, Host, Snapshot
from tpusmi.report.select import Selection, recent, selected
from tpusmi.settings import Settings, settings_path

if TYPE_CHECKING:
    from tpusmi.sources.host_load import HostLoad
    from tpusmi.tui import Options


THREADS = 9
"""One for each source, two for Textual, and two for tpusmi."""


class _Feed(NamedTuple):
    """The collector's newest snapshot, filtered. What it says of the host joins the history."""

    collector: Collector
    history: History
    selection: Selection
    host_load: HostLoad

    def snapshot(self) -> Snapshot:
        newest = self.collector.snapshot()
        self.history.add(self.host_load.readings(newest.host, newest.at_s))
        return recent(selected(newest, self.selection))


def run(host: Host, options: argparse.Namespace, looks: Looks, selection: Selection) -> int:
    """Show the dashboard until the user quits; returns the exit code."""
    from tpusmi.sources.host_load import HostLoad
    from tpusmi.tui import UnusableError, run

    if not can_start(THREADS):
        talk(
            f"the dashboard needs {THREADS} threads, but they cannot be started: {WHERE}; "
            "tpusmi -1 needs fewer"
        )
        return Exit.SOURCE_FAILED
    settings: Settings = options.settings
    if settings.only_user and not users_asked_for(options):
        selection = selection._replace(users=(settings.only_user,))
    collector = open_collector(host, True, settings.interval_s, options.programs, detailed=True)
    collector.start()
    # The theme decides about colors. Textual would obey even an empty NO_COLOR.
    os.environ.pop("NO_COLOR", None)
    forget_exported_size()
    try:
        # The screen filters processes by text, so that the user can remove that filter.
        selection, text = selection._replace(text=""), selection.text
        feed = _Feed(collector, collector.history, selection, HostLoad())
        shown = _tui_options(host, options, looks)._replace(
            filter=text,
            watch_programs=None if options.programs else collector.watch_programs,
            keep_profile=collector.keep_profile,
        )
        return run(feed, shown)
    except UnusableError as error:
        if options.debug:
            raise
        talk(str(error))
        return Exit.NOTHING_HERE
    finally:
        collector.stop()


def _tui_options(host: Host, options: argparse.Namespace, looks: Looks) -> Options:
    from tpusmi.tui import Options

    settings: Settings = options.settings
    # Naming a theme on the command line requests colors.
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
        theme_name=settings.theme,
        hidden=settings.hidden,
        columns=settings.columns,
        sort=settings.sort,
        reverse=settings.reverse,
        window_s=60 * settings.window or None,
        save=lambda values: saved(options.config or settings_path(), values),
    )


def forget_exported_size() -> None:
    """Remove COLUMNS and LINES from the environment if the terminal on stdout reports its size:
    they may be another terminal's or old, but Textual trusts them more.
    """
    try:
        size = os.get_terminal_size()
    except OSError:
        return
    for name, value in (("COLUMNS", size.columns), ("LINES", size.lines)):
        if value:
            os.environ.pop(name, None)


def main() -> int:
    """Show the dashboard behind a tab until the tab is closed; returns the exit code.

    Takes the options of `tpusmi`.
    """
    from tpusmi.cli import on_host
    from tpusmi.cli.config import settings_of
    from tpusmi.cli.options import parser, with_ports

    parse = parser()
    options = parse.parse_args()
    options.settings = settings_of(options)
    # A browser shows every color and all of Unicode, no matter what the server's terminal can show.
    colorless = options.no_color or (os.environ.get("NO_COLOR") and not options.color)
    looks = Looks(not colorless, options.ascii)
    try:
        selection = selection_of(options)
    except ValueError as error:
        parse.error(str(error))

    def show(host: Host) -> int:
        return run(with_ports(host, options.metrics_port), options, looks, selection)

    return on_host(parse, options.simulate, show)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:  # Ctrl-C at the server reaches every process of its terminal
        sys.exit(Exit.INTERRUPTED)
