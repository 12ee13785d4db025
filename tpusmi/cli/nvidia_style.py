"""What dmon, pmon and topo share: options by nvidia-smi's names, and how they print."""

from __future__ import annotations

import argparse
from collections.abc import Callable

from tpusmi import cli
from tpusmi.cli import printing
from tpusmi.cli.argument_types import count, seconds, words
from tpusmi.cli.looks import looks_of
from tpusmi.cli.options import add_colors, add_metrics_port, with_ports
from tpusmi.model import Host, Snapshot
from tpusmi.report import stream_rows
from tpusmi.report.text_grid import in_ascii

DELAY_S = 1.0
CLOCKS = ("D", "T", "DT", "TD")
GROUPS = """
groups of columns (-s), with a dash for what no TPU reports:
  p  pwr, gtemp, mtemp: power and temperatures
  u  mxu, duty, bw: TensorCore utilization, share of time busy, share of the HBM bandwidth
  m  hbm, free: memory in use, and what is left of it
  c  mclk, pclk: clocks
  v  thrtl: how far the chip slows itself down
  e  ici: the worst health of its links, 0 to 10
  t  rxpci, txpci: PCIe traffic
"""


def add_stream_options(p: argparse.ArgumentParser, groups: str) -> None:
    """The options that `dmon` and `pmon` share, by nvidia-smi's names."""
    # fmt: off
    p.add_argument("-s", "--select", dest="columns", metavar="GROUPS", default=groups,
        help=f"groups of columns (default: {groups})")
    p.add_argument("-d", "--delay", type=seconds, dest="interval", default=DELAY_S,
        metavar="SECONDS", help=f"seconds between two prints (default: {DELAY_S:.0f})")
    p.add_argument("-c", "--count", type=count, metavar="N", help="stop after printing N times")
    p.add_argument("-o", "--options", dest="clock", choices=CLOCKS, default="",
        help="begin each line with the date (D) and the time (T)")
    # fmt: on
    add_device_options(p)


def add_device_options(p: argparse.ArgumentParser) -> None:
    """The options for devices, host and terminal; and the values of those that only other commands
    have, for printing.
    """
    # fmt: off
    p.add_argument("-i", "--id", type=words, metavar="DEVICES",
        help="devices by index, name, UUID or PCI address: 0,2-3")
    p.add_argument("--simulate", metavar="TYPE",
        help="use a simulated TPU host such as v5e-8, or the directory of a running one")
    # fmt: on
    add_metrics_port(p)
    add_colors(p)
    p.set_defaults(
        only_visible=False,
        programs=False,
        once=False,
        loop=None,
        streaming=False,
        strict=False,
        user=None,
        pid=None,
        only=[],
    )


def print_stream(
    parse: argparse.ArgumentParser, options: argparse.Namespace, of_processes: bool
) -> int:
    """Print the lines of each device, or of each process on it, until interrupted."""
    try:
        columns = stream_rows.columns_of(options.columns)
    except ValueError as error:
        parse.error(f"-s: {error}")
    stream = stream_rows.Stream(columns, of_processes, options.clock)
    return print_devices(parse, options, stream.text)


def print_devices(
    parse: argparse.ArgumentParser, options: argparse.Namespace, text_of: Callable[[Snapshot], str]
) -> int:
    """Print that text of the devices of this host, or of the simulated one."""
    ascii_only = looks_of(options).ascii_only

    def text(s: Snapshot, first: bool) -> str:
        return in_ascii(text_of(s)) if ascii_only else text_of(s)

    prepared = printing.Printing(text, lambda s: bool(s.devices), devices_alone=True)
    selection = printing.selection_of(options)

    def show(host: Host) -> int:
        return printing.run(with_ports(host, options.metrics_port), options, prepared, selection)

    return cli.on_host(parse, options.simulate, show)
