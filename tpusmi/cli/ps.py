"""`tpusmi ps`: who holds the TPU, for people and for launch scripts."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence

from tpusmi.cli.argument_types import numbers, seconds
from tpusmi.cli.exits import Exit, exit_of, talk
from tpusmi.cli.holder_options import add_options, check_chips, limits, on_host, print_json
from tpusmi.cli.looks import looks_of
from tpusmi.cli.options import columns, flag, parser_of
from tpusmi.model import Holding, Host, Snapshot
from tpusmi.model.holding import status

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tpusmi.report.ps_text import Filters, Listing

LOOK_EVERY_S = 1.0
REPORT_EVERY_S = 10.0

EPILOG = """
The STALE column shows why a holder is stale, `maybe` (signs, but not enough), `?` (its agent or
server could not be read) or `no`. The exit code is 6 only for a holder that is certainly stale.

exit codes, for the chips in question: 0 free, 1 no TPU here, 3 no holder visible but not every
process could be inspected, or free but you have no permission to open it, 5 held, 6 held by a
stale holder, 7 a TPU without a device node. To wait for a free TPU in a launch script:

  tpusmi ps --wait-free 60 && python train.py
"""


def run(arguments: Sequence[str]) -> int:
    """Print the holders; the exit code says whether the TPU is free."""
    parse = parser()
    options = parse.parse_args(arguments)
    return on_host(parse, options, lambda host: _run(host, parse, options))


def parser() -> argparse.ArgumentParser:
    """The parser of `tpusmi ps`."""
    description = "List the holders of the TPU, whether each is stale, and libtpu's lock file."
    p = parser_of("tpusmi ps", "[options]", description, EPILOG)
    # fmt: off
    p.add_argument("-u", "--user", nargs="+", metavar="USER", help="only holders of these users")
    p.add_argument("-p", "--pid", type=numbers, action="extend", metavar="PID",
        help="only these holders: 1,2")
    flag(p, "--stale", help="only stale holders")
    layout = p.add_mutually_exclusive_group()
    flag(layout, "--tree", help="under their parents (the default)")
    flag(layout, "--flat", help="as a plain list")
    p.add_argument("--wait-free", type=seconds, metavar="SECONDS",
        help="wait up to this long until the chips are free")
    # fmt: on
    add_options(p)
    return p


def _run(host: Host, parse: argparse.ArgumentParser, options: argparse.Namespace) -> int:
    from tpusmi.report import ps_text

    whole = _awaited(host, options)
    check_chips(whole, options.chip, parse)
    view = ps_text.view(whole, _filters(options))
    try:
        _print(view, options)
    except BrokenPipeError:
        pass  # `| head` has read enough; the exit code is still the answer
    holding = status(view.on_chips)
    is_enough = holding == Holding.NOT_VISIBLE and options.visible_only
    return Exit.ANSWERED if is_enough else exit_of(holding)


def _filters(options: argparse.Namespace) -> Filters:
    from tpusmi.report.ps_text import Filters

    users, pids, chips = (tuple(f or ()) for f in (options.user, options.pid, options.chip))
    return Filters(users, pids, chips, options.stale)


def _print(view: Listing, options: argparse.Namespace) -> None:
    from tpusmi.report import ps_text
    from tpusmi.report.text_grid import Sheet

    if options.json:
        print_json(ps_text.to_dict(view))
    else:
        looks = looks_of(options)
        sheet = Sheet(looks.color, columns())
        sys.stdout.write(ps_text.text(view, sheet, looks.ascii_only, not options.flat))
    sys.stdout.flush()


def _awaited(host: Host, options: argparse.Namespace) -> Snapshot:
    """The first look; with --wait-free the first one without a holder, or the last one in time."""
    from tpusmi.collect import LOOK_DEADLINE_S, holding_collector
    from tpusmi.report.ps_text import view

    until_s = time.monotonic() + (options.wait_free or 0.0)
    reported_s = 0.0
    collector = holding_collector(host, limits(options))
    try:
        while True:
            snapshot = collector.read_once(LOOK_DEADLINE_S)
            left_s = until_s - time.monotonic()
            on_chips = view(snapshot, _filters(options)).on_chips
            if left_s <= 0 or status(on_chips) not in (Holding.HELD, Holding.STALE):
                return snapshot
            if time.monotonic() - reported_s >= REPORT_EVERY_S:
                reported_s = time.monotonic()
                pids = ", ".join(str(p.pid) for p in on_chips.processes if p.holds)
                talk(f"held by pid {pids}, waiting {left_s:.0f} s more")
            time.sleep(min(LOOK_EVERY_S, left_s))
    finally:
        collector.stop()
