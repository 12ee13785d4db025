"""The chips that the kernel shows on the PCI bus, and their device nodes."""

# No `from __future__ import annotations`: named tuples would compile each annotation at import.

import math
import os
import threading
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from tpusmi.model import ABSENT, DENIED, FAILED, OK, Chip, Host, Outcome, Status
from tpusmi.sources.sysfs.functions import Function, Survey, survey
from tpusmi.sources.sysfs.nodes import Nodes, find_nodes, lookalikes

BUS = "/sys/bus/pci/devices"
NOTES_MOST = 8
SURVEY_EVERY_S = 30.0
"""Every file of every function is read again after that, if nothing seems to have changed."""


class Bus(NamedTuple):
    """What the PCI bus says of TPUs."""

    status: Status
    message: str
    chips: tuple[Chip, ...] = ()
    notes: tuple[str, ...] = ()
    """Of functions that may or may not be TPUs; what is known of a chip stands in its own."""


class Sysfs:
    """The kernel's source: which chips are here."""

    name = "sysfs"
    period_s = 5.0

    def __init__(self, host: Host) -> None:
        self._host = host
        self._lock = threading.Lock()
        self._newest: Bus | None = None
        self._seen: object = None
        self._read_at_s = self._surveyed_at_s = -math.inf

    def read(self, now_s: float) -> Outcome:
        """Every chip on the PCI bus. ABSENT when there is none."""
        found = self._look(now_s, 0.0)
        took_s = time.monotonic() - now_s
        return Outcome(
            self.name, found.status, found.message, took_s, notes=found.notes, chips=found.chips
        )

    def chips(self) -> Sequence[Chip]:
        """The chips, from a look that is not older than a period: for other sources."""
        return self._look(time.monotonic(), self.period_s).chips

    def close(self) -> None:
        """Nothing is held open."""

    def _look(self, now_s: float, most_s: float) -> Bus:
        """The bus as it was at most so long ago."""
        with self._lock:
            if self._newest is None or now_s - self._read_at_s >= most_s:
                seen = _seen(self._host, self._newest)
                # Chips come and go seldom, and each has a dozen files.
                if seen != self._seen or now_s - self._surveyed_at_s >= SURVEY_EVERY_S:
                    self._newest, self._surveyed_at_s = read_chips(self._host), now_s
                    self._seen = _seen(self._host, self._newest)
                self._read_at_s = now_s
            assert self._newest is not None
            return self._newest


def _seen(host: Host, bus: Bus | None) -> object:
    """What tells that nothing has changed: the entries of the bus, and the nodes of its chips."""
    try:
        names = os.listdir(host.path(BUS))
    except OSError:
        return None
    nodes = [node for chip in bus.chips for node in chip.nodes] if bus else []
    return sorted(names), [_state(host.path(node)) for node in nodes]


def _state(path: str) -> object:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_ino, found.st_mode, found.st_uid, found.st_gid


def read_chips(host: Host) -> Bus:
    """The chips of a host in PCI order. Opens no device node, and no file that could block."""
    path = host.path(BUS)
    try:
        names = os.listdir(path)
    except (FileNotFoundError, NotADirectoryError):
        return Bus(ABSENT, _without_bus(host))
    except OSError as error:
        status = DENIED if isinstance(error, PermissionError) else FAILED
        return Bus(status, f"{BUS} cannot be listed: {error.strerror}")
    found = survey(path, names)
    nodes = find_nodes(host, found.tpus)
    chips = tuple(_chip(i, of, nodes) for i, of in enumerate(_by_chip(found.tpus)))
    return Bus(*_status(chips, found), chips, _few(found.notes))


def _by_chip(functions: Iterable[Function]) -> list[list[Function]]:
    """The functions of each chip together: a 7x has its two under one PCI address."""
    chips: dict[tuple[int | None, ...], list[Function]] = {}
    for f in functions:
        domain, bus, slot, number = f.position
        per_chip = 1 if f.generation is None else f.generation.pci_functions
        key = (domain, bus, slot, number // per_chip, f.device_id)
        chips.setdefault(key, []).append(f)
    return list(chips.values())


def _chip(index: int, functions: Sequence[Function], nodes: Nodes) -> Chip:
    first = functions[0]
    generation = first.generation
    whole = generation is None or len(functions) == generation.pci_functions
    notes = [note for f in functions for note in _notes(f, nodes)]
    if generation is not None and not whole:
        notes.insert(
            0, f"only {len(functions)} of its {generation.pci_functions} functions is here"
        )
    every_node = (node for f in functions for node in nodes.of[f.address])
    return Chip(
        index=index,
        generation=None if generation is None else generation.name,
        kind=first.kind,
        pci_addresses=tuple(f.address for f in functions),
        nodes=tuple(dict.fromkeys(every_node)),  # functions of one IOMMU group share a node
        devices=sum(f.devices for f in functions),
        numa_node=first.numa_node,
        pcie_link=first.pcie_link,
        hbm_nominal_bytes=None if generation is None or not whole else generation.hbm_bytes,
        notes=tuple(notes),
        driver=first.driver,
        driver_version=first.driver_version,
        other_nodes=tuple(pair for f in functions for pair in nodes.others.get(f.address, ())),
    )


def _notes(f: Function, nodes: Nodes) -> list[str]:
    troubles = (f"{f.address}: {trouble}" for trouble in f.directory.troubles)
    return [*troubles, *f.notes, *nodes.notes[f.address]]


def _status(chips: Sequence[Chip], found: Survey) -> tuple[Status, str]:
    if chips:
        kinds = Counter(chip.kind for chip in chips)
        return OK, ", ".join(f"{count} × {kind}" for kind, count in kinds.items())
    if found.denied:
        return DENIED, f"no TPU that may be seen: {found.notes[0]}"
    if found.garbled:
        return FAILED, found.notes[0]
    message = "no TPU on the PCI bus"
    if found.others:
        others = ", ".join(f"{n} × {what}" for what, n in Counter(found.others).items())
        message += f" (of Google's there is {others})"
    if found.notes:
        message += f"; {found.notes[0]}"
    return ABSENT, message


def _without_bus(host: Host) -> str:
    message = f"no PCI bus in {BUS.partition('/bus')[0]}, as in some containers and sandboxes"
    nodes = lookalikes(host)
    if nodes:
        more = f" and {len(nodes) - 1} more" if len(nodes) > 1 else ""
        message += f"; {nodes[0]}{more} may be TPUs"
    return message


def _few(notes: Sequence[str]) -> tuple[str, ...]:
    more = len(notes) - NOTES_MOST
    return (*notes[:NOTES_MOST], *([f"and {more} more of that kind"] if more > 0 else ()))
