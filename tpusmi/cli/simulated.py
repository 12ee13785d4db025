"""`--simulate`: a simulated TPU host under any command, or one that is running."""

from __future__ import annotations

import argparse
import os

from tpusmi.simulate.attached import attach


def show_simulated(parse: argparse.ArgumentParser, options: argparse.Namespace) -> int:
    """The command that the options ask for, on a simulated host; the exit code."""
    from tpusmi.cli import show

    name = options.simulate
    if os.sep not in name and not os.path.isdir(name):
        return _start(parse, options)
    try:
        host = attach(name)
    except ValueError as error:
        parse.error(str(error))
    return show(host, parse, options)


def _start(parse: argparse.ArgumentParser, options: argparse.Namespace) -> int:
    """The same on a host that lives as long as the command."""
    from tpusmi.cli import show
    from tpusmi.cli.simulate import checked, refuse
    from tpusmi.simulate.host import Plan, PortBusyError, StartError, start

    plan = checked(Plan(options.simulate), parse)
    try:
        with start(plan) as host:
            return show(host, parse, options)
    except (StartError, PortBusyError) as error:
        return refuse(error)
