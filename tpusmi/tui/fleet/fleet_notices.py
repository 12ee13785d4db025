"""Notices of a fleet in sentences, with what to do: exporters send their codes alone. Pure."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import lru_cache

from tpusmi.fleet.fleet_figures import FleetHost, FleetNotice, HostState
from tpusmi.fleet.groups.slice_jobs import with_slice_jobs
from tpusmi.fleet.groups.slice_wide import ABOUT_SLICES, SILENT, STRAGGLER
from tpusmi.fleet.groups.stragglers import stragglers
from tpusmi.merge import advice
from tpusmi.model import Notice
from tpusmi.text import clean

NAMES_SHOWN = 2
"""Hosts that a line about many names."""
CODE_MOST, NAME_MOST = 40, 60


_WITHOUT_NUMBERS = {
    "starved": ("its chips are busy for only part of the time: they wait for input or for the host",
                "prefetch, more data workers, fewer block_until_ready()"),
    "busy_for_nothing": ("its chips are busy, but MXU and HBM bandwidth are at 0: its program "
                         "hangs, or waits for another host",
                         "see where it hangs, on each host of the slice: `py-spy dump --pid PID`"),
    "busy_without_mxu": ("its chips are busy, and their MXU does little: bound by memory or "
                         "communication, tiny programs, or small shapes",
                         "see MXU, DUTY and BW of the host; `tpusmi profile PID` there tells more"),
    "recompiling": ("it keeps compiling: shapes, dtypes or static arguments that change make XLA "
                    "compile again",
                    "pad batches to a few fixed shapes, keep dtypes the same"),
}  # fmt: skip
"""Meaning and advice of codes whose text has numbers, which exporters do not send, or several
cases.
"""


@lru_cache(maxsize=1)
def _table() -> dict[str, tuple[str, str]]:
    """Meaning and advice by code, of its first case."""
    table = dict(_WITHOUT_NUMBERS)
    for code, meaning, what_to_do in advice.rows():
        table.setdefault(code, (meaning, what_to_do))
    return table


def meaning(code: str) -> tuple[str, str]:
    """What that code means, and what to do about it."""
    unknown = f"It has the notice {clean(code, CODE_MOST)!r}.", advice.UNKNOWN_CODE
    return _table().get(code, unknown)


def of_host(n: FleetNotice) -> Notice:
    """A notice of one host in words."""
    what, what_to_do = meaning(n.code)
    if n.pid is not None:
        what_to_do = what_to_do.replace("PID", str(n.pid))
    about = [
        f"chip {n.chip}" if n.chip is not None else "",
        f"device {clean(n.device, 20)}" if n.device and n.chip is None else "",
    ]
    where = " ".join(filter(None, about))
    several = f" ({n.problems} of these)" if n.problems > 1 else ""
    text = f"{where}: {_lower(what)}" if where else _lower(what)  # behind a mark, or a pid
    return Notice(n.code, text.rstrip(".") + several, n.pid, advice=what_to_do, since_s=n.age_s)


def of_fleet(hosts: Sequence[FleetHost], slow: Collection[str] = ()) -> list[Notice]:
    """A line for each code, of how many hosts have it; the most frequent first. One about a slice
    names the slice, or the straggler: `slow` has the keys of those.
    """
    by_code: dict[str, dict[str, FleetNotice]] = {}
    for host in hosts:
        for n in host.notices:
            by_code.setdefault(n.code, {}).setdefault(_subject(host, n.code, slow), n)
    ordered = sorted(by_code.items(), key=lambda item: (-len(item[1]), item[0]))
    return [_line(code, named) for code, named in ordered]


def about_slice(host: FleetHost, of_slice: Sequence[FleetHost]) -> list[Notice]:
    """What all hosts of its slice have, in a line for each code. It names the hosts that it is
    about, where they are known among `of_slice`; else the slice.
    """
    first: dict[str, FleetNotice] = {}
    for n in host.notices:
        if n.code in ABOUT_SLICES:
            first.setdefault(n.code, n)
    whose = f"slice {clean(host.slice, NAME_MOST)}" if host.slice else host.name
    names = _concerned(of_slice) if first else {}
    return [_line(code, dict.fromkeys(names.get(code) or [whose], n)) for code, n in first.items()]


def _concerned(hosts: Sequence[FleetHost]) -> dict[str, list[str]]:
    """By code, the names of the hosts that such a notice is about."""
    return {
        SILENT: [h.name for h in hosts if h.state == HostState.DOWN],
        STRAGGLER: [slow.name for slow in stragglers(with_slice_jobs(hosts))],
    }


def _subject(host: FleetHost, code: str, slow: Collection[str]) -> str:
    """What a notice is about: its host, or the slice of which one host has it for all."""
    is_slice = code in ABOUT_SLICES and not (code == STRAGGLER and host.key in slow)
    return f"slice {clean(host.slice, NAME_MOST)}" if is_slice and host.slice else host.name


def _line(code: str, named: dict[str, FleetNotice]) -> Notice:
    what, what_to_do = meaning(code)
    names = [*named]
    more = f" +{len(names) - NAMES_SHOWN}" if len(names) > NAMES_SHOWN else ""
    where = ", ".join(names[:NAMES_SHOWN]) + more
    ages = [n.age_s for n in named.values() if n.age_s is not None]
    text = f"{where}: {_lower(what).rstrip('.')}"
    return Notice(code, text, advice=what_to_do, since_s=max(ages, default=None))


def _lower(sentence: str) -> str:
    """The sentence behind a colon. A name such as `JAX` keeps its letters."""
    first, _, rest = sentence.partition(" ")
    return f"{first.lower() if first.istitle() or len(first) == 1 else first} {rest}"
