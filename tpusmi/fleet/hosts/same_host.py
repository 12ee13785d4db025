"""Which exporters report the same machine, so that none is counted twice. Pure.

Two Prometheus servers scrape one exporter, a machine has two exporters, or its exporter comes back
under another address. Two machines with the same name are two hosts.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import NamedTuple

from tpusmi.fleet.hosts.clean_labels import TEXT_MOST, text
from tpusmi.fleet.hosts.host_parts import HostParts, Identity
from tpusmi.fleet.hosts.sample_reads import AT, UPTIME
from tpusmi.fleet.hosts.sample_targets import EXPORTED, ScrapedExporter
from tpusmi.model import PROCESS
from tpusmi.text import clean_or_none

AHEAD_MOST_S = 60.0
"""A clock that is ahead by no more than this may be right: this computer's is late."""


class Reported(NamedTuple):
    """What one exporter said, and who it is."""

    name: str | None
    slice: str | None
    simulated: bool
    address: str | None
    others: tuple[tuple[str, str], ...]
    """All other labels that its samples have in common."""
    parts: HostParts
    at_s: float | None
    """Unix time of its numbers by its own clock."""
    age_s: float | None
    """How old they are; None where it does not say, or its clock is wrong."""
    is_old: bool
    """Its numbers may not be of the present."""

    @property
    def boot(self) -> str | None:
        """The id of the machine's boot; None if unknown. Simulated machines have the real one's."""
        return None if self.simulated else text(self.parts.host.facts, "boot_id")

    @property
    def booted_s(self) -> float | None:
        """Unix time of that boot; None if unknown."""
        up_s = self.parts.host.values.get(UPTIME)
        return None if self.at_s is None or up_s is None else self.at_s - up_s


def reported(target: ScrapedExporter, now_s: float, old_after_s: float) -> Reported:
    """What that exporter said, with its age at that time."""
    labels = target.labels
    address = labels.get(f"{EXPORTED}instance") or labels.get("instance")
    at_s = target.parts.host.values.get(AT)
    age_s = None if at_s is None or at_s > now_s + AHEAD_MOST_S else max(0.0, now_s - at_s)
    usual = ("host", "slice", "instance", "simulated")
    return Reported(
        name=text(labels, f"{EXPORTED}host") or text(labels, "host"),
        slice=text(labels, f"{EXPORTED}slice") or text(labels, "slice"),
        simulated=labels.get("simulated") == "true",
        address=clean_or_none(address, TEXT_MOST),
        others=tuple(sorted((n, v) for n, v in labels.items() if n not in usual)),
        parts=target.parts,
        at_s=at_s,
        age_s=age_s,
        is_old=age_s is None or age_s > old_after_s,
    )


def one_of_each(all_reported: Iterable[Reported]) -> tuple[list[Reported], list[str]]:
    """One report of each machine, and sentences about machines with several live exporters.

    Of several a live one is taken, then the one with the first address: the same at each look.
    """
    machines: list[Reported] = []
    problems = []
    current = _without_former_names([*all_reported])
    ranked = sorted(current, key=lambda r: (*_called(r), *_rank(r)))
    for _, group in groupby(ranked, key=_called):
        of_name = _OfName()
        for r in group:
            same = of_name.same_as(r)
            if same is None:
                of_name.add(r)
            elif not r.is_old and r.address != same.address:
                problems.append(
                    f"{r.name} is reported by {same.address} and {r.address}: "
                    "the numbers of the first are used"
                )
        machines += of_name.kept
    return machines, problems


def _without_former_names(all_reported: Sequence[Reported]) -> list[Reported]:
    """Without what a live exporter said while its host or slice had another name."""
    live = {(r.boot, r.address) for r in all_reported if not r.is_old and r.boot is not None}
    return [r for r in all_reported if not r.is_old or (r.boot, r.address) not in live]


def _called(r: Reported) -> tuple[str, ...]:
    # An exporter that names no host is known by its address alone.
    return r.name or f"\0{r.address}", r.slice or "", str(r.simulated)


def _rank(r: Reported) -> tuple[object, ...]:
    return r.is_old, -(r.at_s or 0.0) if r.is_old else 0.0, r.address or "", r.others


class _OfName:
    """The machines of one name and slice: usually one, but all of them may be called localhost."""

    def __init__(self) -> None:
        self.kept: list[Reported] = []
        self._live = 0
        self._by_boot: dict[str, Reported] = {}
        self._by_address: dict[str | None, Reported] = {}
        self._by_process: dict[Identity, Reported] = {}

    def add(self, r: Reported) -> None:
        """Take in another machine."""
        self.kept.append(r)
        self._live += not r.is_old
        if r.boot is not None:
            self._by_boot.setdefault(r.boot, r)
        self._by_address.setdefault(r.address, r)
        for process in r.parts.items(PROCESS):
            self._by_process.setdefault(process, r)

    def same_as(self, r: Reported) -> Reported | None:
        """The machine that it reports, if that is here already. Live reports come first."""
        if r.boot is not None and r.boot in self._by_boot:
            return self._by_boot[r.boot]
        return self._by_signs(r) or self._successor(r)

    def _by_signs(self, r: Reported) -> Reported | None:
        """The machine with the same address or a process of the same number and name; not one whose
        boot is known to be another.
        """
        same = [self._by_address.get(r.address)]
        same += [self._by_process.get(process) for process in r.parts.items(PROCESS)]
        return next((k for k in same if k is not None and None in (k.boot, r.boot)), None)

    def _successor(self, r: Reported) -> Reported | None:
        """The only live machine of that name, if it can be the one that was heard of before: it may
        have booted since then.
        """
        if not r.is_old or self._live != 1:
            return None
        live = self.kept[0]
        if None in (live.boot, r.boot):
            return live
        booted_s, last_s = live.booted_s, r.at_s
        has_booted = booted_s is not None and last_s is not None and booted_s > last_s
        return live if has_booted else None
