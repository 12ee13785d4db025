"""The dashboard on this terminal, fed by the collector of a host."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import NamedTuple

from tpusmi.actions.end import Order, Report, Say, carry_out
from tpusmi.actions.me import me
from tpusmi.actions.plan import Plan, Request, make_plan
from tpusmi.cli.terminal import Looks
from tpusmi.collect import Collector, open_collector
from tpusmi.model import History, Host, Process, Snapshot
from tpusmi.report.select import Wanted, recent, selected

INTERVAL_DEFAULT_S = 1.0


class _Feed(NamedTuple):
    """The collector's newest snapshot, cut down to what was asked for."""

    collector: Collector
    history: History
    wanted: Wanted

    def snapshot(self) -> Snapshot:
        return recent(selected(self.collector.snapshot(), self.wanted))


class _Ender(NamedTuple):
    """Ends what a person has chosen, another user's process too: the dialog names the user."""

    host: Host

    def plan(self, snapshot: Snapshot, processes: Sequence[Process]) -> Plan:
        pids = tuple(p.pid for p in processes)
        return make_plan(snapshot, Request(pids, all_users=True), me(self.host))

    def carry_out(self, snapshot: Snapshot, plan: Plan, order: Order, say: Say) -> Report:
        return carry_out(self.host, snapshot.chips, plan, order, say)


def run(host: Host, options: argparse.Namespace, looks: Looks, wanted: Wanted) -> int:
    """Show the dashboard until it is quit; the exit code."""
    from tpusmi.tui import Options, run

    interval_s = options.interval or INTERVAL_DEFAULT_S
    collector = open_collector(host, True, interval_s, options.programs, detailed=True)
    collector.start()
    try:
        return run(
            _Feed(collector, collector.history, wanted),
            Options(
                interval_s=interval_s,
                ascii=looks.ascii_only,
                color=looks.color,
                ender=None if options.readonly else _Ender(host),
            ),
        )
    finally:
        collector.stop()
