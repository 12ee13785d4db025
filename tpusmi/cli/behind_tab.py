"""The dashboard behind a browser's tab. `tpusmi serve-tui` runs it, with pipes as its terminal.

`python -m tpusmi.cli.behind_tab` takes the options of `tpusmi`. The environment makes it speak the
protocol of textual-serve: Textual reads its driver from there.
"""

from __future__ import annotations

import os
import sys

from tpusmi.cli import dashboard, on_host
from tpusmi.cli.config import settings_of
from tpusmi.cli.exits import Exit
from tpusmi.cli.options import parser
from tpusmi.cli.printing import wanted_of
from tpusmi.cli.terminal import Looks


def main() -> int:
    """Show the dashboard until its tab is closed; returns the exit code."""
    parse = parser()
    options = parse.parse_args()
    options.settings = settings_of(options)
    # A browser shows every color and all of Unicode, no matter what the server's terminal can show.
    colorless = options.no_color or (os.environ.get("NO_COLOR") and not options.color)
    looks = Looks(not colorless, options.ascii)
    selection = wanted_of(options)
    return on_host(
        parse, options.simulate, lambda host: dashboard.run(host, options, looks, selection)
    )


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:  # Ctrl-C at the server reaches every process of its terminal
        sys.exit(Exit.INTERRUPTED)
