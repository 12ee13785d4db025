"""The chips that the kernel shows on the PCI bus, and their device nodes."""

import math
import os
import threading
import time
from collections import Counter
from collections.abc import Iterable, Sequence

from tpusmi.model import ABSENT, DENIED, FAILED, OK, SYSFS, Chip, Host, Outcome, Status
from tpusmi.sources.sysfs.functions import PciFunction, Survey, survey
from tpusmi.sources.sysfs.node_paths import FunctionNode, find_nodes, lookalikes

BUS = "/sys/bus/pci/devices"
NOTES_MOST = 8
SURVEY_EVERY_S = 30.0
"""Every file of every function is read again after this time, even if nothing seems to change."""


class Sysfs:
    """The source of the chips on this host."""

    name = SYSFS
    period_s = 5.0

    def __init__(self, host: Host) -> None:
        self._host = host
        self._lock = threading.Lock()
        self._newest: Outcome | None = None
        self._signature: object = None
        self._read_at_s = self._surveyed_at_s = -math.inf

    def read(self, now_s: float) -> Outcome:
        """Every chip on the PCI bus. ABSENT when there is none."""
        outcome = self._look(now_s, 0.0)
        return outcome._replace(took_s=time.monotonic() - now_s)

    def chips(self) -> Sequence[Chip]:
        """The chips, from a look that is at most a period old: for other sources."""
        return self._look(time.monotonic(), self.period_s).chips

    def close(self) -> None:
        """Nothing to close."""

    def _look(self, now_s: float, age_most_s: float) -> Outcome:
        """The bus, from a look that is at most `age_most_s` old."""
        with self._lock:
            if self._newest is None or now_s - self._read_at_s >= age_most_s:
                signature = _signature(self._host, self._newest)
                # Chips rarely come and go, and each has a dozen files.
                if signature != self._signature or now_s - self._surveyed_at_s >= SURVEY_EVERY_S:
                    self._newest, self._surveyed_at_s = read_chips(self._host), now_s
                    self._signature = _signature(self._host, self._newest)
                self._read_at_s = now_s
            assert self._newest is not None
            return self._newest


def _signature(host: Host, bus: Outcome | None) -> object:
    """The entries of the bus and the nodes of its chips: while they are equal, nothing changed."""
    try:
        names = os.listdir(host.path(BUS))
    except OSError:
        return None
    nodes = [node for chip in bus.chips for node in chip.nodes] if bus else []
    return sorted(names), [_state(host.path(node)) for node in nodes]


def _state(path: str) -> object:
    try:
        info = os.stat(path)
    except OSError:
        return None
    return info.st_ino, info.st_mode, info.st_uid, info.st_gid


def read_chips(host: Host) -> Outcome:
    """The chips of a host in PCI order, with notes on functions that may or may not be TPUs. Opens
    no device node, and no file that could block.
    """
    path = host.path(BUS)
    try:
        names = os.listdir(path)
    except (FileNotFoundError, NotADirectoryError):
        return Outcome(SYSFS, ABSENT, _without_bus(host))
    except OSError as error:
        status = DENIED if isinstance(error, PermissionError) else FAILED
        return Outcome(SYSFS, status, f"{BUS} cannot be listed: {error.strerror}")
    surveyed = survey(path, names)
    nodes = find_nodes(host, surveyed.tpus)
    chips = tuple(_chip(i, of, nodes) for i, of in enumerate(_by_chip(surveyed.tpus)))
    status, message = _status(chips, surveyed)
    return Outcome(SYSFS, status, message, chips=chips, notes=_few(surveyed.notes))


def _by_chip(functions: Iterable[PciFunction]) -> list[list[PciFunction]]:
    """The functions of each chip together: a 7x has two under one PCI address."""
    chips: dict[tuple[int | None, ...], list[PciFunction]] = {}
    for f in functions:
        domain, bus, slot, number = f.position
        per_chip = 1 if f.generation is None else f.generation.pci_functions
        key = (domain, bus, slot, number // per_chip, f.device_id)
        chips.setdefault(key, []).append(f)
    return list(chips.values())


def _chip(index: int, functions: Sequence[PciFunction], nodes: dict[str, FunctionNode]) -> Chip:
    first = functions[0]
    generation = first.generation
    whole = generation is None or len(functions) == generation.pci_functions
    notes = []
    if generation is not None and not whole:
        notes.append(f"only {len(functions)} of its {generation.pci_functions} functions is here")
    for f in functions:
        notes += [f"{f.address}: {trouble}" for trouble in f.directory.troubles]
        notes += [*f.notes, *nodes[f.address].notes]
    own = [nodes[f.address] for f in functions]
    return Chip(
        index=index,
        generation=None if generation is None else generation.name,
        kind=first.kind,
        pci_addresses=tuple(f.address for f in functions),
        # Functions of one IOMMU group share a node.
        nodes=tuple(dict.fromkeys(n.path for n in own if n.path is not None)),
        devices=sum(f.devices for f in functions),
        numa_node=first.numa_node,
        pcie_link=first.pcie_link,
        hbm_nominal_bytes=None if generation is None or not whole else generation.hbm_bytes,
        notes=tuple(notes),
        driver=first.driver,
        driver_version=first.driver_version,
        cpus=first.cpus,
        other_nodes=tuple((n.path, other) for n in own if n.path for other in n.others),
    )


def _status(chips: Sequence[Chip], surveyed: Survey) -> tuple[Status, str]:
    if chips:
        kinds = Counter(chip.kind for chip in chips)
        return OK, ", ".join(f"{count} × {kind}" for kind, count in kinds.items())
    if any(d.denied for d in surveyed.doubtful):
        return DENIED, f"no visible TPU: {surveyed.notes[0]}"
    if any(d.troubles for d in surveyed.doubtful):
        return FAILED, surveyed.notes[0]
    message = "no TPU on the PCI bus"
    if surveyed.others:
        others = ", ".join(f"{n} × {what}" for what, n in Counter(surveyed.others).items())
        message += f" (other Google devices: {others})"
    if surveyed.notes:
        message += f"; {surveyed.notes[0]}"
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
