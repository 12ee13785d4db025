"""The values that Tab offers for each option: names, fields, and what is on the host now."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice

from tpusmi.text import clean

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse

    from tpusmi.model import Snapshot

LOOK_WITHIN_S = 1.0
"""A Tab that looks at the host waits no longer."""

ENTRIES_MOST, HOSTS_MOST = 10_000, 16
"""Entries of a directory that are looked at, and hosts in it that are offered."""
MEANING_MOST = 80
"""Characters of a meaning: it may be the command line of another user's process."""

SINGLE = {
    "--theme",
    "--view",
    "--user",
    "--simulate",
    "machine",
    "--format",
    "targets",
    "--group",
    "--sort",
}
"""Options and arguments that take one word, or words with spaces between them."""
FILES = {"--config", "--compare", "--save", "--web-config", "--textfile", "--http-config"}
"""Options that take the name of a file or a directory."""

Values = Mapping[str, str]
"""Words, each with its meaning; empty where it has none."""


def add_completers(parse: argparse.ArgumentParser) -> None:
    """Give every option and argument of the parser its values."""
    from argcomplete.completers import FilesCompleter

    for action in parse._actions:
        names = (*action.option_strings, action.dest)
        make = next((VALUES[name] for name in names if name in VALUES), None)
        if make is not None:
            values = _completer(make, _is_list(names))
            both = _or(values, FilesCompleter()) if "targets" in names else values
            action.completer = both  # type: ignore[attr-defined]
        elif FILES & {*names}:
            action.completer = FilesCompleter()  # type: ignore[attr-defined]


def _is_list(names: Iterable[str]) -> bool:
    """True for options that take several words with commas between them."""
    return not {*names} & SINGLE


def _or(
    values: Callable[..., dict[str, str]], files: Callable[..., Iterable[str]]
) -> Callable[..., dict[str, str]]:
    """Those values, and the files that fit."""

    def both(prefix: str, **more: object) -> dict[str, str]:
        return {**dict.fromkeys(files(prefix, **more), ""), **values(prefix=prefix, **more)}

    return both


def _completer(
    make: Callable[[argparse.Namespace], Values], is_list: bool
) -> Callable[..., dict[str, str]]:
    def values(prefix: str, parsed_args: argparse.Namespace, **more: object) -> dict[str, str]:
        try:
            offered = make(parsed_args)
        except (OSError, ValueError, RuntimeError):
            return {}
        head, comma, _ = prefix.rpartition(",") if is_list else ("", "", "")
        taken = head.split(",")
        return {
            f"{head}{comma}{word}": clean(about, MEANING_MOST)
            for word, about in offered.items()
            if word not in taken and word.isprintable()
        }

    return values


def _plain(words: Iterable[str]) -> Values:
    return dict.fromkeys(words, "")


def _themes(_: argparse.Namespace) -> Values:
    from tpusmi.tui.draw.themes import THEMES

    return _plain(THEMES)


def _views(_: argparse.Namespace) -> Values:
    from tpusmi.tui.feed import DeviceView

    return _plain(view.value for view in DeviceView)


def _formats(_: argparse.Namespace) -> Values:
    return _plain(("csv", "csv,noheader", "csv,nounits", "csv,noheader,nounits"))


def _device_fields(_: argparse.Namespace) -> Values:
    from tpusmi.report.query import device_fields

    return {name: field.help for name, field in device_fields().items()}


def _process_fields(_: argparse.Namespace) -> Values:
    from tpusmi.report.query import process_fields

    return {name: field.help for name, field in process_fields().items()}


def _sections(_: argparse.Namespace) -> Values:
    from tpusmi.report.full_report import SECTIONS

    return {name: title for name, (title, _) in SECTIONS.items()}


def _filters(_: argparse.Namespace) -> Values:
    from tpusmi.cli.argument_types import ONLY

    return _plain(f"{kind}=" for kind in ONLY)


def _signals(_: argparse.Namespace) -> Values:
    from tpusmi.actions.end import ENDING_SIGNALS

    return _plain(signal.name.removeprefix("SIG") for signal in ENDING_SIGNALS)


def _faults(_: argparse.Namespace) -> Values:
    from tpusmi.simulate.faults import ANY_TIME, AT_START

    return {name.partition(":")[0]: about for name, about in {**ANY_TIME, **AT_START}.items()}


def _machines(_: argparse.Namespace) -> Values:
    from tpusmi.chips import GENERATIONS

    return _plain(f"{name}-8" for g in GENERATIONS for name in g.type_names)


def _hosts(options: argparse.Namespace) -> Values:
    """Types, and the directories of simulated hosts that run now; no directory for a fleet."""
    running = () if hasattr(options, "prometheus") else _directories()
    return {**_machines(options), **dict.fromkeys(running, "a running simulated host")}


def _directories() -> Iterator[str]:
    """Directories of simulated hosts. Any user can make one: no odd name is offered."""
    from tpusmi.simulate.directory import attach

    for place in ("/dev/shm", os.environ.get("TMPDIR") or "/tmp"):
        try:
            with os.scandir(place) as entries:
                names = [entry.name for entry in islice(entries, ENTRIES_MOST)]
        except OSError:
            continue
        hosts = [name for name in names if _is_ours(name)]
        for name in sorted(hosts)[:HOSTS_MOST]:
            try:
                yield attach(os.path.join(place, name)).root
            except ValueError:
                continue


def _is_ours(name: str) -> bool:
    """True for the name of a simulated host's directory, as `tempfile` completes it."""
    from tpusmi.simulate.directory import PREFIX

    return name.startswith(PREFIX) and bool(
        re.fullmatch(r"\w{1,16}", name.removeprefix(PREFIX), re.ASCII)
    )


def _snapshot(options: argparse.Namespace) -> Snapshot:
    """A look at the host that the options name. Raises ValueError for one that the command is yet
    to start: what runs here is not on it.
    """
    from tpusmi.collect import look, this_host
    from tpusmi.simulate.directory import attach

    simulate = getattr(options, "simulate", None)
    host = this_host() if simulate is None else attach(simulate)
    return look(host, deadline_s=LOOK_WITHIN_S)


def _chips(options: argparse.Namespace) -> Values:
    return {str(c.index): c.kind or "" for c in _snapshot(options).chips}


def _devices(options: argparse.Namespace) -> Values:
    return {str(d.index): d.name for d in _snapshot(options).devices}


def _holders(options: argparse.Namespace) -> Values:
    return {str(p.pid): p.command for p in _snapshot(options).processes if p.holds}


def _processes(options: argparse.Namespace) -> Values:
    return {str(p.pid): p.command for p in _snapshot(options).processes if p.is_living}


def _users(options: argparse.Namespace) -> Values:
    return _plain(sorted({p.user for p in _snapshot(options).processes if p.user}))


def _groupings(_: argparse.Namespace) -> Values:
    from tpusmi.fleet.groups.group_members import GROUPINGS

    return _plain(GROUPINGS)


def _orders(_: argparse.Namespace) -> Values:
    from tpusmi.fleet.groups.fleet_orders import ORDERS

    return {name: order.title for name, order in ORDERS.items()}


VALUES: Mapping[str, Callable[[argparse.Namespace], Values]] = {
    "--theme": _themes,
    "--view": _views,
    "--format": _formats,
    "--query-tpu": _device_fields,
    "--query-processes": _process_fields,
    "--display": _sections,
    "--only": _filters,
    "--signal": _signals,
    "--fault": _faults,
    "--group": _groupings,
    "--sort": _orders,
    "machine": _machines,
    "--simulate": _hosts,
    "--chip": _chips,
    "--id": _devices,
    "pids": _holders,
    "--pid": _processes,
    "targets": _processes,
    "--user": _users,
}
"""How to find the values, by an option's name, or by the argument's."""
