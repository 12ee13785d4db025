"""`tpusmi dmon`: a line for each device again and again, in the format of `nvidia-smi dmon`."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from tpusmi.cli.nvidia_style import GROUPS, add_stream_options, print_stream
from tpusmi.cli.options import parser_of
from tpusmi.report import stream_rows


def run(arguments: Sequence[str]) -> int:
    """Print until interrupted, or as often as the options say."""
    parse = parser()
    return print_stream(parse, parse.parse_args(arguments), of_processes=False)


def parser() -> argparse.ArgumentParser:
    """The parser of `tpusmi dmon`."""
    p = parser_of(
        "tpusmi dmon",
        "[options]",
        "Print one line per device again and again, in the format of nvidia-smi dmon.",
        GROUPS,
    )
    add_stream_options(p, stream_rows.DEFAULT_GROUPS)
    return p
