"""Options and helpers that `tpusmi ps` and `tpusmi kill` share."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Mapping

from tpusmi import cli
from tpusmi.cli.argument_types import chips, number
from tpusmi.cli.options import add_colors, add_metrics_port, flag, with_ports
from tpusmi.model import Host, Snapshot
from tpusmi.model.process import IDLE_S, STUCK_S, Limits


# fmt: off
def add_options(p: argparse.ArgumentParser) -> None:
    """The options of both commands."""
    p.add_argument("--chip", type=chips, action="extend", metavar="N",
        help="chips by index: 0,2-5")
    flag(p, "--json", help="print one JSON object")
    p.add_argument("--idle-minutes", type=_minutes, metavar="N", default=IDLE_S / 60,
        help=f"minutes after which an idle holder is stale (default {IDLE_S / 60:.0f})")
    p.add_argument("--simulate", metavar="TYPE",
        help="use a simulated TPU host such as v5e-8, or the directory of a running one")
    flag(p, "--visible-only",
        help="treat processes that cannot be inspected as not holding the TPU: exit 0 instead of 3")
    add_metrics_port(p)
    add_colors(p)
# fmt: on


def limits(options: argparse.Namespace) -> Limits:
    """How long a holder may do nothing before it counts as stale."""
    return Limits(60.0 * options.idle_minutes, min(STUCK_S, 60.0 * options.idle_minutes))


def on_host(
    parse: argparse.ArgumentParser, options: argparse.Namespace, act: Callable[[Host], int]
) -> int:
    """Call `act` with this host or the simulated one of the options; the exit code."""
    # Command lines are any bytes: text that the terminal cannot show must not stop us half-way.
    sys.stdout.reconfigure(errors="replace")  # type: ignore[union-attr]
    return cli.on_host(
        parse, options.simulate, lambda host: act(with_ports(host, options.metrics_port))
    )


def check_chips(s: Snapshot, chosen: list[int] | None, parse: argparse.ArgumentParser) -> None:
    """End with a usage error when a requested chip does not exist."""
    present = {c.index for c in s.chips}
    missing = {n for n in chosen or () if n not in present}
    if missing and (present or s.visibility.nodes):
        from tpusmi.report.words import ranges

        here = f"chips here: {ranges(list(present))}" if present else "no PCI bus is visible here"
        parse.error(f"no chip {ranges(list(missing))}; {here}")


def _minutes(text: str) -> float:
    value = number(text, "minutes")
    if not 0 < value <= 1e6:
        raise argparse.ArgumentTypeError(f"{text} is not a positive number of minutes")
    return value


def print_json(result: Mapping[str, object]) -> None:
    """One JSON object on stdout, on several lines for a terminal."""
    indent = 2 if sys.stdout.isatty() else None
    sys.stdout.write(json.dumps(result, indent=indent, allow_nan=False) + "\n")
