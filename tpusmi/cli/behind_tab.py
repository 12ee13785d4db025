"""The dashboard behind a browser's tab: what `tpusmi serve-tui` runs, with pipes for a terminal.

`python -m tpusmi.cli.behind_tab` takes the options of `tpusmi`. That it talks as textual-serve
understands it is in the environment: Textual looks there for its driver.
"""

from __future__ import annotations

import argparse
import os
import sys

from tpusmi.cli import dashboard
from tpusmi.cli.config import settings_of
from tpusmi.cli.exits import Exit
from tpusmi.cli.options import parser
from tpusmi.cli.printing import wanted_of
from tpusmi.cli.terminal import Looks
from tpusmi.model import Host


def main() -> int:
    """Show the dashboard until its tab is closed; the exit code."""
    parse = parser()
    options = parse.parse_args()
    options.settings = settings_of(options)
    if options.simulate is None:
        from tpusmi.collect import this_host

        return _show(this_host(), options)
    from tpusmi.cli.simulated import on_simulated

    return on_simulated(parse, options.simulate, lambda host: _show(host, options))


def _show(host: Host, options: argparse.Namespace) -> int:
    # A browser shows every colour and all of Unicode, whatever the server's terminal can.
    colorless = options.no_color or (os.environ.get("NO_COLOR") and not options.color)
    return dashboard.run(host, options, Looks(not colorless, options.ascii), wanted_of(options))


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:  # Ctrl-C at the server is for everybody on its terminal
        sys.exit(Exit.INTERRUPTED)
