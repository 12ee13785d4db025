"""`tpusmi ps`: who holds the TPU, for people and for launch scripts."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence

from tpusmi.cli.exits import Exit
from tpusmi.cli.holding import EXITS, add_options, check_chips, limits, numbers, on_host, talk
from tpusmi.cli.options import Help, seconds
from tpusmi.cli.terminal import looks_of
from tpusmi.cli.width import columns
from tpusmi.model import Holding, Host, Snapshot
from tpusmi.model.holding import status

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tpusmi.report.holding import Filters, View

LOOK_EVERY_S = 1.0
SAY_EVERY_S = 10.0

EPILOG = """
A holder is stale (STALE shows why), `maybe` (signs, but not enough), `?` (a witness could not be
asked) or `no`. Only what is certain to be stale makes the exit code 6.

exit codes, of the chips asked for: 0 free, 1 no TPU here, 3 no holder visible but not every process
could be inspected, or free and not for you to open, 5 held, 6 held and a holder is stale, 7 a TPU
without a device node. As a pre-flight in a launch script:

  tpusmi ps --wait-free 60 && python train.py
"""


def run(arguments: Sequence[str]) -> int:
    """Print the holders; the exit code says whether the TPU is free."""
    parse = parser()
    options = parse.parse_args(arguments)
    return on_host(parse, options, lambda host: _run(host, parse, options))


def parser() -> argparse.ArgumentParser:
    """The parser of `tpusmi ps`."""
    p = argparse.ArgumentParser(
        prog="tpusmi ps",
        usage="tpusmi ps [options]",
        description="Who holds the TPU: every process with a device node open, whether it is stale "
        "and why, who has only loaded libtpu, and what libtpu's lock file means.",
        epilog=EPILOG,
        formatter_class=Help,
        allow_abbrev=False,
    )
    p.add_argument("-u", "--user", nargs="+", metavar="USER", help="holders of these users")
    p.add_argument(
        "-p", "--pid", type=numbers, action="extend", metavar="PID", help="these holders: 1,2"
    )
    p.add_argument("--stale", action="store_true", help="only stale holders")
    how = p.add_mutually_exclusive_group()
    how.add_argument("--tree", action="store_true", help="under who started them (the default)")
    how.add_argument("--flat", action="store_true", help="a plain list")
    p.add_argument(
        "--wait-free",
        type=seconds,
        metavar="SECONDS",
        help="wait so long for the chips to be free",
    )
    p.add_argument(
        "--visible-only",
        action="store_true",
        help="take what cannot be inspected for no holder: exit 0 instead of 3",
    )
    add_options(p)
    return p


def _run(host: Host, parse: argparse.ArgumentParser, options: argparse.Namespace) -> int:
    from tpusmi.report import holding

    whole = _awaited(host, options)
    check_chips(whole, options.chip, parse)
    shown = holding.view(whole, _filters(options))
    found = status(shown.on_chips)
    code = EXITS[found]
    if code == Exit.NOTHING_HERE and not options.json:
        reasons = "; ".join(f"{o.source}: {o.message}" for o in whole.sources)
        talk(f"no TPU here ({reasons})")
    try:
        _print(shown, options)
    except BrokenPipeError:
        pass  # `| head` has read enough; the code is what was asked for
    return Exit.ANSWERED if found == Holding.NOT_VISIBLE and options.visible_only else code


def _filters(options: argparse.Namespace) -> Filters:
    from tpusmi.report.holding import Filters

    users, pids, chips = (tuple(f or ()) for f in (options.user, options.pid, options.chip))
    return Filters(users, pids, chips, options.stale)


def _print(shown: View, options: argparse.Namespace) -> None:
    from tpusmi.report import holding
    from tpusmi.report.grid import Sheet

    if options.json:
        indent = 2 if sys.stdout.isatty() else None
        sys.stdout.write(json.dumps(holding.to_dict(shown), indent=indent, allow_nan=False) + "\n")
    else:
        looks = looks_of(options)
        sheet = Sheet(looks.color, columns())
        sys.stdout.write(holding.text(shown, sheet, looks.ascii_only, not options.flat))
    sys.stdout.flush()


def _awaited(host: Host, options: argparse.Namespace) -> Snapshot:
    """The first look; with --wait-free the first one without a holder, or the last in time."""
    from tpusmi.collect import LOOK_DEADLINE_S, holding_collector
    from tpusmi.report.holding import view

    until_s = time.monotonic() + (options.wait_free or 0.0)
    said_s = 0.0
    collector = holding_collector(host, limits(options))
    try:
        while True:
            snapshot = collector.read_once(LOOK_DEADLINE_S)
            left_s = until_s - time.monotonic()
            on_chips = view(snapshot, _filters(options)).on_chips
            if left_s <= 0 or status(on_chips) not in (Holding.HELD, Holding.STALE):
                return snapshot
            if time.monotonic() - said_s >= SAY_EVERY_S:
                said_s = time.monotonic()
                pids = ", ".join(str(p.pid) for p in on_chips.processes if p.holds)
                talk(f"held by pid {pids}, waiting {left_s:.0f} s more")
            time.sleep(min(LOOK_EVERY_S, left_s))
    finally:
        collector.stop()
