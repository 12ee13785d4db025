"""Which exporters report the same machine, so that none is counted twice. Pure.

Two Prometheus servers scrape one exporter, a machine has two exporters, or its exporter comes back
under another address. Two machines with the same name are two hosts.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from typing import NamedTuple

from tpusmi.fleet.clean_labels import TEXT_MOST, text
from tpusmi.fleet.host_parts import HostParts
from tpusmi.fleet.sample_reads import AT, UPTIME
from tpusmi.fleet.sample_targets import EXPORTED, ScrapedExporter
from tpusmi.model import PROCESS
from tpusmi.text import clean_or_none

CLOCK_S = 60.0
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
        """The id of the machine's boot. Simulated machines have that of the real one."""
        return None if self.simulated else text(self.parts.host.facts, "boot_id")

    @property
    def booted_s(self) -> float | None:
        """Unix time of that boot."""
        up_s = self.parts.host.values.get(UPTIME)
        return None if self.at_s is None or up_s is None else self.at_s - up_s


def reported(target: ScrapedExporter, now_s: float, old_after_s: float) -> Reported:
    """What that exporter said, with its age at that time."""
    labels = target.labels
    address = labels.get(f"{EXPORTED}instance") or labels.get("instance")
    at_s = target.parts.host.values.get(AT)
    age_s = None if at_s is None or at_s > now_s + CLOCK_S else max(0.0, now_s - at_s)
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
    ranked = sorted(all_reported, key=lambda r: (*_called(r), *_rank(r)))
    for _, group in groupby(ranked, key=_called):
        kept: list[Reported] = []
        for r in group:
            same = next((k for k in kept if _is_same(k, r)), None)
            if same is None:
                kept.append(r)
            elif not r.is_old and r.address != same.address:
                problems.append(
                    f"{r.name} is reported by {same.address} and {r.address}: "
                    "the numbers of the first are used"
                )
        machines += kept
    return machines, problems


def _called(r: Reported) -> tuple[str, ...]:
    # An exporter that names no host is known by its address alone.
    return r.name or f"\0{r.address}", r.slice or "", str(r.simulated)


def _rank(r: Reported) -> tuple[object, ...]:
    return r.is_old, -(r.at_s or 0.0) if r.is_old else 0.0, r.address or "", r.others


def _is_same(kept: Reported, other: Reported) -> bool:
    """Whether both report the same machine. `other` is old if `kept` is."""
    if kept.boot is not None and other.boot is not None:
        return kept.boot == other.boot or _has_rebooted(kept, other)
    if kept.address == other.address:
        return True
    return (other.is_old and not kept.is_old) or _has_same_process(kept, other)


def _has_rebooted(kept: Reported, other: Reported) -> bool:
    """Whether one boot began after the other was last heard of."""
    return other.at_s is not None and kept.booted_s is not None and kept.booted_s > other.at_s


def _has_same_process(a: Reported, b: Reported) -> bool:
    return bool(a.parts.items(PROCESS).keys() & b.parts.items(PROCESS).keys())
