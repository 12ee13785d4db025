"""`--simulate`: a simulated TPU host under any command, or one that is running."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable

from tpusmi.model import Host
from tpusmi.simulate.attached import attach


def show_simulated(parse: argparse.ArgumentParser, options: argparse.Namespace) -> int:
    """The command that the options ask for, on a simulated host; the exit code."""
    from tpusmi.cli import show

    return on_simulated(parse, options.simulate, lambda host: show(host, parse, options))


def on_simulated(parse: argparse.ArgumentParser, name: str, act: Callable[[Host], int]) -> int:
    """Act on the simulated host of that type, which lives as long as that takes, or on the running
    one in that directory; the exit code.
    """
    if os.sep not in name and not os.path.isdir(name):
        return _start(parse, name, act)
    try:
        host = attach(name)
    except ValueError as error:
        parse.error(str(error))
    return act(host)


def _start(parse: argparse.ArgumentParser, name: str, act: Callable[[Host], int]) -> int:
    from tpusmi.cli.simulate import checked, refuse
    from tpusmi.simulate.host import Plan, PortBusyError, StartError, start

    plan = checked(Plan(name), parse)
    try:
        with start(plan) as host:
            return act(host)
    except (StartError, PortBusyError) as error:
        return refuse(error)
