"""`tpusmi demo`: a real training job, and the dashboard on it."""

from __future__ import annotations

from collections.abc import Sequence

from tpusmi.model import Host
from tpusmi.report.select import Wanted


def run(arguments: Sequence[str]) -> int:
    """Start the job, show the dashboard, and leave nothing behind; the dashboard's exit code."""
    from tpusmi.cli import dashboard, printing
    from tpusmi.cli.options import parser
    from tpusmi.cli.terminal import looks_of, why_no_dashboard
    from tpusmi.demo import run as run_demo

    options = parser().parse_args(arguments)
    looks = looks_of(options)

    def show(directory: str) -> int:
        host = Host(segment_dir=directory)
        if why_no_dashboard() is None:
            return dashboard.run(host, options, looks, Wanted())
        return printing.run(options, looks, host)

    return run_demo(show)
