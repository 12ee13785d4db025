"""What each notice says, and which devices and processes it is about. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from tpusmi.merge.advice import ON_DEVICES
from tpusmi.model import STALE_HOLDER, SUSPECT_HOLDER, Device, Notice, Process, Snapshot
from tpusmi.report import words

STRAGGLES, SILENT = "*", "x"
"""The marks of a host that the others wait for, and of one that is not heard of."""
MARK = "!"
"""Behind the name of a device or process that a notice is about, on every screen."""
OF_VERDICT = (STALE_HOLDER, SUSPECT_HOLDER)
"""Codes of the warnings that repeat the verdict on a holder."""
WHAT_TO_DO = "what to do: "


def marks_in_words(marks: Iterable[str], silent: str = "silent") -> list[str]:
    """`! warning`, for each kind of mark among these. `silent` is the word for SILENT."""
    present = {*marks}
    meanings = {MARK: "warning", SILENT: silent, STRAGGLES: "slow"}
    return [f"{mark} {meaning}" for mark, meaning in meanings.items() if mark in present]


def what(n: Notice) -> str:
    """What is wrong, with the process that it is about."""
    return n.message if n.pid is None else f"pid {n.pid}: {n.message}"


def age(n: Notice) -> str:
    """`for 3m05s`; empty where that is not known."""
    return "" if n.since_s is None else f"for {words.elapsed(n.since_s)}"


def lines(n: Notice) -> list[str]:
    """A notice for a pipe or a log: what is wrong and since when, then what to do."""
    since = f" ({age(n)})" if n.since_s is not None else ""
    return [f"{what(n)}{since}", *([f"{WHAT_TO_DO}{n.advice}"] if n.advice else [])]


def marked(n: Notice) -> list[str]:
    """The same behind the mark."""
    first, *more = lines(n)
    return [f"{MARK} {first}", *(f"  {line}" for line in more)]


class Concerns:
    """The notices of a snapshot by what they are about: tables ask row by row."""

    def __init__(self, s: Snapshot) -> None:
        self._s = s
        self._of_pid: dict[int, list[Notice]] = {}
        self._of_chip: dict[int, list[Notice]] = {}
        self._on_devices: dict[int, list[Notice]] = {}
        """By pid, those about a process that mark its devices, or one of them."""
        for n in s.warnings:
            if n.pid is not None:
                self._of_pid.setdefault(n.pid, []).append(n)
                if n.device is not None or n.code in ON_DEVICES:
                    self._on_devices.setdefault(n.pid, []).append(n)
            if n.chip is not None:
                self._of_chip.setdefault(n.chip, []).append(n)

    def of_device(self, d: Device) -> list[Notice]:
        """Those about its chip, and those about its process that concern the device as well."""
        of_chip = [] if d.chip is None else self._of_chip.get(d.chip, [])
        pids = {key.pid for key in d.owners if not key.claim}
        if d.key.process is not None and not d.key.process.claim:
            pids.add(d.key.process.pid)
        of_pids = [n for pid in sorted(pids) for n in self._on_devices.get(pid, ())]
        of_pids = [n for n in of_pids if n.device in (None, d.key.index)]
        return _once((*of_chip, *of_pids)) if of_chip and of_pids else of_chip or of_pids

    def of_process(self, p: Process, devices: Iterable[Device]) -> list[Notice]:
        """Those about the process, and those about the chips of its devices, which are given. None
        for a process that only a file shows: its pid may be another's.
        """
        if p.is_dead or not p.is_verified:
            return []
        chips = dict.fromkeys(d.chip for d in devices if d.chip is not None)
        of_chips = (n for chip in chips for n in self._of_chip.get(chip, ()))
        return _once((*self._of_pid.get(p.pid, ()), *of_chips))


def _once(notices: Iterable[Notice]) -> list[Notice]:
    return list(dict.fromkeys(notices))
