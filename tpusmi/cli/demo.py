"""`tpusmi demo`: a real training job, and tpusmi on it."""

from __future__ import annotations

import argparse
import time

from tpusmi.collect import open_collector
from tpusmi.model import Host

DEVICES_WITHIN_S = 30.0


def run(parse: argparse.ArgumentParser, options: argparse.Namespace) -> int:
    """Start the job, show it as the options say, and leave nothing behind; the exit code."""
    from tpusmi.cli import printing, show, wants_text
    from tpusmi.cli.terminal import looks_of
    from tpusmi.demo import run as run_demo

    try:
        printing.prepare(options, looks_of(options))
    except ValueError as error:
        parse.error(str(error))

    def watch(directory: str) -> int:
        host = Host(segment_dir=directory)
        if wants_text(options):
            _wait_for_devices(host)
        return show(host, parse, options)

    return run_demo(watch)


def _wait_for_devices(host: Host) -> None:
    """Wait, with a limit, until the job has published its devices."""
    until_s = time.monotonic() + DEVICES_WITHIN_S
    collector = open_collector(host)
    while time.monotonic() < until_s and not collector.read_once().devices:
        time.sleep(0.05)
