"""What `tpusmi ps` and `tpusmi kill` have in common: on which host, which chips, how it looks."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable

from tpusmi import cli
from tpusmi.cli.exits import Exit
from tpusmi.cli.options import add_colors, words
from tpusmi.merge.staleness import IDLE_S, STUCK_S, Limits
from tpusmi.model import Holding, Host, Snapshot

EXITS = {
    Holding.FREE: Exit.ANSWERED,
    Holding.NO_TPU: Exit.NOTHING_HERE,
    Holding.NO_NODE: Exit.NO_NODE,
    Holding.NOT_VISIBLE: Exit.PERMISSION,
    Holding.NO_PERMISSION: Exit.PERMISSION,
    Holding.HELD: Exit.BUSY,
    Holding.STALE: Exit.STALE,
}


def add_options(p: argparse.ArgumentParser) -> None:
    """The options of both commands."""
    p.add_argument("--chip", type=numbers, action="extend", metavar="N", help="chips by index: 0,1")
    p.add_argument("--json", action="store_true", help="one object on stdout")
    p.add_argument(
        "--idle-minutes",
        type=_minutes,
        metavar="N",
        default=IDLE_S / 60,
        help=f"idle for so long is stale (default {IDLE_S / 60:.0f})",
    )
    p.add_argument(
        "--simulate",
        metavar="TYPE",
        help="on a simulated TPU host; or the directory of one that runs",
    )
    add_colors(p)


def numbers(text: str) -> list[int]:
    """The numbers of a comma list. Raises ArgumentTypeError."""
    found = words(text)
    if not all(word.isascii() and word.isdigit() and len(word) < 10 for word in found):
        raise argparse.ArgumentTypeError(f"{text} is not a list of numbers")
    return [int(word) for word in found]


def limits(options: argparse.Namespace) -> Limits:
    """For how long a holder may do nothing."""
    return Limits(60.0 * options.idle_minutes, min(STUCK_S, 60.0 * options.idle_minutes))


def on_host(
    parse: argparse.ArgumentParser, options: argparse.Namespace, act: Callable[[Host], int]
) -> int:
    """Do it on this host, or on the simulated one that is asked for; the exit code."""
    # Commands are any bytes: what the terminal cannot show must not end us half-way.
    sys.stdout.reconfigure(errors="replace")  # type: ignore[union-attr]
    return cli.on_host(parse, options.simulate, act)


def check_chips(s: Snapshot, chips: list[int] | None, parse: argparse.ArgumentParser) -> None:
    """End with usage when a chip is asked for that is not here."""
    known = {c.index for c in s.chips}
    missing = [n for n in chips or () if n not in known]
    if missing and (known or s.visibility.nodes):
        from tpusmi.report.words import ranges

        here = f"there are chips {ranges(list(known))}" if known else "no PCI bus tells of any"
        parse.error(f"no chip {missing[0]} here: {here}")


def talk(text: str) -> None:
    """A line for a person, not for scripts."""
    sys.stderr.write(f"tpusmi: {text}\n")
    sys.stderr.flush()


def number(text: str) -> float:
    """A number. Raises ArgumentTypeError, whose words name the text and not this function."""
    try:
        return float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text} is not a number") from None


def _minutes(text: str) -> float:
    value = number(text)
    if not 0 < value <= 1e6:
        raise argparse.ArgumentTypeError(f"{text} is not a number of minutes")
    return value
