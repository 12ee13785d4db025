"""`tpusmi demo`: a real training job on a simulated TPU host, and tpusmi on it."""

from __future__ import annotations

import argparse
import time

from tpusmi.collect import Collector
from tpusmi.model import Host
from tpusmi.sources.segments import Segments

JOB_WITHIN_S = 30.0


def run(parse: argparse.ArgumentParser, options: argparse.Namespace) -> int:
    """Start the job, show it as the options say, and leave nothing behind; the exit code."""
    from tpusmi.cli import printing, show, wants_text
    from tpusmi.cli.terminal import looks_of
    from tpusmi.demo import run as run_demo

    if options.simulate is not None:
        parse.error("the demo simulates a host of its own: tpusmi --simulate has no job of JAX's")
    try:
        printing.prepare(options, looks_of(options))
    except ValueError as error:
        parse.error(str(error))

    def watch(host: Host) -> int:
        if wants_text(options):
            _wait_for_agent(host)
        return show(host, parse, options)

    return run_demo(watch)


def _wait_for_agent(host: Host) -> None:
    """Wait, with a limit, until the job has published what it does."""
    until_s = time.monotonic() + JOB_WITHIN_S
    collector = Collector(host, [Segments(host)])
    while time.monotonic() < until_s and not collector.read_once().devices:
        time.sleep(0.05)
