"""`tpusmi topo -m`: how the devices are connected, in the format of `nvidia-smi topo -m`."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from tpusmi.cli.nvidia_style import add_device_options, print_devices
from tpusmi.cli.options import flag, parser_of
from tpusmi.report import topology_matrix


def run(arguments: Sequence[str]) -> int:
    """Print the matrix once."""
    parse = parser()
    options = parse.parse_args(arguments)
    return print_devices(parse, options, topology_matrix.matrix)


def parser() -> argparse.ArgumentParser:
    """The parser of `tpusmi topo`."""
    p = parser_of(
        "tpusmi topo",
        "[-m] [options]",
        "Print how the devices are connected, and which processors are near them.",
        topology_matrix.LEGEND,
    )
    flag(p, "-m", "--matrix", help="as a matrix, devices by devices (the default)")
    add_device_options(p)
    p.set_defaults(interval=None, count=None)
    return p
