"""The one-shot commands: take a snapshot and print it; with --loop, again and again."""

import argparse
import os
import sys
import time
from collections.abc import Callable
from itertools import count
from typing import NamedTuple

from tpusmi.cli.exits import Exit, talk
from tpusmi.cli.options import WATCH_S, columns, hidden_by
from tpusmi.collect import open_collector
from tpusmi.model import AGENT, DENIED, FAILED, LIBTPU, OK, Host, Snapshot
from tpusmi.report.select import NO_MATCH, NO_PROCESS, Selection, missing, recent, selected
from tpusmi.text import clean

Printer = Callable[[Snapshot, bool], str]
"""The text of a snapshot; the flag is True for the first one of a loop."""


_OTHER_FORMATS = {
    "json": "--json prints JSON",
    "xml": "--json prints everything as JSON",
    "prometheus": "tpusmi serve has all numbers for Prometheus",
    "influx": "--json --loop prints everything as JSON lines",
}


class Printing(NamedTuple):
    """What to print, and when the command has found something."""

    text: Printer
    has_answer: Callable[[Snapshot], bool]
    devices_alone: bool = False
    """True where no process is printed: a selection of processes selects their devices."""


def run(host: Host, options: argparse.Namespace, printing: Printing, selection: Selection) -> Exit:
    """Print the host once, --count times, or until interrupted. The exit code is that of the last
    time.
    """
    collector = open_collector(host, with_programs=options.programs)
    every_s = _every_s(options)
    last = 1 if every_s is None else options.count
    selection, unresolved = _with_uids(selection) if last == 1 else (selection, "")
    due_s = time.monotonic()
    is_strict_failure = False
    for number in count(1):
        whole = collector.read_once()
        snapshot = selected(whole, selection, printing.devices_alone)
        text = printing.text(snapshot, number == 1)
        _write(text)
        statuses = [o.status for o in snapshot.sources]
        is_strict_failure |= options.strict and FAILED in statuses
        if number == 1 and snapshot.devices and (absent := missing(whole, selection)):
            talk(f"not here: {', '.join(absent)}")
        if number == last:
            break
        if number == 1 and all(status == FAILED for status in statuses):
            _explain(snapshot, selection)
        # Ticks are multiples of the period, so that printing does not delay the later ones.
        due_s = max(due_s + (every_s or 0.0), time.monotonic())
        time.sleep(max(0.0, due_s - time.monotonic()))
    if is_strict_failure:
        return Exit.SOURCE_FAILED
    return _exit_of(snapshot, printing, selection, unresolved, NO_MATCH in text)


def _every_s(options: argparse.Namespace) -> float | None:
    """The period of a loop; None to print once."""
    period_s: float | None = options.loop or options.interval
    if options.once or (period_s is None and options.count is None and not options.streaming):
        return None
    return WATCH_S if period_s is None else period_s


def _is_answered(snapshot: Snapshot, printing: Printing, selection: Selection) -> bool:
    """True where there is something to show; of selected processes, at least one."""
    if selection.names_processes and not printing.devices_alone:
        return bool(recent(snapshot).processes)
    return printing.has_answer(snapshot)


def _with_uids(selection: Selection) -> tuple[Selection, str]:
    """The filters with the uids of the users next to their names, because a process may not have
    its user's name yet; and a user whose uid did not arrive in time.
    """
    from tpusmi.sources.users import user_number

    uids, unresolved = [], ""
    for user in selection.users:
        try:
            uid = None if unresolved or user.isdigit() else user_number(user)
        except TimeoutError:
            unresolved = user
        else:
            uids += [] if uid is None else [str(uid)]
    return selection._replace(users=(*selection.users, *uids)), unresolved


def _exit_of(
    snapshot: Snapshot, printing: Printing, selection: Selection, unresolved: str, is_said: bool
) -> Exit:
    """The exit code after the last snapshot. It says on stderr why nothing was found, unless that
    is in the output.
    """
    if _is_answered(snapshot, printing, selection):
        return Exit.ANSWERED
    if unresolved:
        talk(
            f"the user database did not return the uid of {clean(unresolved, 64)} in time: "
            "give the uid instead"
        )
        return Exit.SOURCE_FAILED
    return _explain(snapshot, selection, is_said)


def prepare(options: argparse.Namespace) -> Printing:
    """How to print what the options select. Raises ValueError on wrong usage."""
    _check(options)
    if options.query_tpu is not None:
        return Printing(_csv_printer(options), _has_devices, devices_alone=True)
    if options.query_processes is not None:
        return Printing(_csv_printer(options), _has_jobs)
    if options.query:
        return Printing(_report_printer(options.display), _has_devices)
    if options.json:
        import json

        indent = 2 if sys.stdout.isatty() and _every_s(options) is None else None
        return Printing(
            lambda s, first: json.dumps(s.to_dict(), indent=indent, allow_nan=False) + "\n",
            _has_jobs,
        )
    from tpusmi.report import plain_table

    if options.list_tpus:
        return Printing(
            lambda s, first: plain_table.device_list(s), _has_devices, devices_alone=True
        )
    from tpusmi.cli.looks import looks_of

    looks, hidden = looks_of(options), hidden_by(options)

    def table(s: Snapshot, first: bool) -> str:
        text = plain_table.table(s, looks.color, looks.ascii_only, columns(), hidden)
        return text if first else f"\n{text}"

    return Printing(table, _has_jobs)


def _check(options: argparse.Namespace) -> None:
    """Raises ValueError for options that do not fit together."""
    is_query = options.query_tpu is not None or options.query_processes is not None
    if options.is_maybe_device and (is_query or options.list_tpus or options.query):
        raise ValueError("-i is the interval: --id chooses devices, and --loop repeats a query")
    if options.display is not None and not options.query:
        raise ValueError("-d chooses sections of -q: tpusmi -q -d MEMORY")
    if options.format is not None:
        _check_format(options.format, is_query)
    if options.count is not None and (options.once or options.monitor):
        other = "--once prints one table" if options.once else "--monitor shows the dashboard"
        raise ValueError(f"{other}: leave out either that or --count")


def _check_format(text: str, is_query: bool) -> None:
    """Raises ValueError for a format without a query, and for the formats of other tools."""
    name = text.partition(",")[0].strip()
    if name in _OTHER_FORMATS:
        raise ValueError(f"there is no --format={name}: {_OTHER_FORMATS[name]}")
    if not is_query:
        raise ValueError("--format needs --query-tpu or --query-processes")


def _has_devices(snapshot: Snapshot) -> bool:
    return bool(snapshot.devices)


def _has_jobs(snapshot: Snapshot) -> bool:
    return bool(snapshot.devices or recent(snapshot).processes)


def _report_printer(display: str | None) -> Printer:
    from tpusmi.report.full_report import full_report, sections_of

    sections = () if display is None else sections_of(display)
    return lambda s, first: full_report(s, sections)


def _csv_printer(options: argparse.Namespace) -> Printer:
    from tpusmi.report import query

    if options.format is None:
        raise query.QueryError("a query needs --format=csv[,noheader][,nounits]")
    layout = query.parse_format(options.format)
    by_device = options.query_tpu is not None
    by_name = query.device_fields() if by_device else query.process_fields()
    names = options.query_tpu if by_device else options.query_processes
    columns = query.parse_query(
        names, by_name, "--help-query-tpu" if by_device else "--help-query-processes"
    )

    def text(s: Snapshot, first: bool) -> str:
        head = query.csv_header(columns, layout) if first and layout.header else ""
        living = [p for p in s.processes if p.is_living]
        keys = {p.key for p in living}
        devices = [d for d in s.devices if d.key.process is None or d.key.process in keys]
        return head + query.csv_rows(s, devices if by_device else living, columns, layout)

    return text


def selection_of(options: argparse.Namespace) -> Selection:
    """The filters among the options; `-u` without a name is this user. Raises ValueError for a
    variable of --only-visible that cannot be understood.
    """
    users = options.user
    if users is not None and not users:
        # Not $USER, which sudo and su may leave unchanged.
        users = [str(os.getuid())]
    pids = [pid for some in options.pid or () for pid in some]
    only = [(kind, word) for kind, words in options.only for word in words]

    def of(kind: str) -> list[str]:
        return [word for its_kind, word in only if its_kind == kind]

    selection = Selection(
        users=tuple(user for user in (*(users or ()), *of("user")) if user),
        pids=(*pids, *map(int, of("pid"))),
        devices=(*(options.id or ()), *of("id")),
        chips=tuple(map(int, of("chip"))),
        text=(of("text") or [""])[-1],
    )
    if not options.only_visible:
        return selection
    from tpusmi.cli.visible_chips import with_visible

    return with_visible(selection)


def users_asked_for(options: argparse.Namespace) -> bool:
    """True when the command line names users, or selects all of them with `--only user=`."""
    return options.user is not None or any(kind == "user" for kind, _ in options.only)


def _explain(snapshot: Snapshot, selection: Selection, is_printed: bool = False) -> Exit:
    """Print why there is nothing to show: "no TPU" only if every source could be asked. With
    `is_printed`, that nothing matches is in the output already.
    """
    reasons = "".join(f"\n  {o.source}: {o.message}" for o in snapshot.sources)
    failed = _unanswered(snapshot)
    has_agent = any(o.source == AGENT and o.status == OK for o in snapshot.sources)
    what = "no TPU here" if has_agent else "no TPU and no agent here"
    code = Exit.NOTHING_HERE
    if selection != Selection():
        what, reasons = NO_PROCESS if snapshot.devices else NO_MATCH, ""
    elif snapshot.visibility.nodes and snapshot.visibility.reason:
        what, code = "no agent is visible from here", Exit.PERMISSION
    elif snapshot.visibility.nodes:
        code = Exit.ANSWERED  # without a bus, these nodes may or may not be TPUs
    if any(o.status == DENIED for o in snapshot.sources):
        what, code = "nothing is visible here, try sudo", Exit.PERMISSION
    elif failed:
        what = f"nothing was found, but {', '.join(failed)} could not be asked"
        code = Exit.SOURCE_FAILED
    if code != Exit.ANSWERED and not (what == NO_MATCH and is_printed):
        talk(f"{what}{':' if reasons else ''}{reasons}")
    return code


def _unanswered(snapshot: Snapshot) -> list[str]:
    """The sources that could not be asked. On a port of libtpu's, another program did answer."""
    others = bool(snapshot.servers) and not any(s.is_service for s in snapshot.servers)
    failed = [o.source for o in snapshot.sources if o.status == FAILED]
    return [source for source in failed if not (others and source == LIBTPU)]


def _write(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()
