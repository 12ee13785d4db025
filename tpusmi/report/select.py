"""The selected part of a Snapshot: by user, by process, by device."""

from collections.abc import Collection
from typing import NamedTuple

from tpusmi.model import (
    DENIED,
    FAILED,
    Device,
    DeviceKey,
    Notice,
    Outcome,
    Process,
    ProcessKey,
    Snapshot,
)

WAYS = 4
"""In which a word can name a device."""
NO_MATCH = "No device or process matches."
DEAD_SHOWN_S = 15 * 60.0
"""A dead job stays on screens this long; --json lists it as long as its segment exists."""


class Selection(NamedTuple):
    """What to keep. An empty field keeps everything."""

    users: tuple[str, ...] = ()
    pids: tuple[int, ...] = ()
    devices: tuple[str, ...] = ()
    """Devices by their names (`cpu:3`, `cpu:3@4321`), UUIDs, nodes (`vfio/0`), or indexes. A
    number that is not an index is the one in a name.
    """
    chips: tuple[int, ...] = ()
    """By index: all devices of each."""
    text: str = ""
    """Keeps processes with this in their pid, user, command, phase or state."""


def uuid(snapshot: Snapshot, device: Device) -> str:
    """Unique and stable name of the device. That of a chip's device is the
    same whatever job has it: its PCI address, with the core where two have one.
    """
    chip = snapshot.chip_of(device)
    if chip is None or not chip.pci_addresses:
        return _uuid_without_chip(device)
    core = device.index - sum(c.devices for c in snapshot.chips if c.index < chip.index)
    addresses = chip.pci_addresses
    if len(addresses) == chip.devices:
        return f"TPU-{addresses[core]}"
    return f"TPU-{addresses[0]}/{core}"


def _uuid_without_chip(device: Device) -> str:
    process = device.key.process
    if process is not None:
        return f"{device.own_name}@{process.pid}-{process.start_ticks}"
    if device.node is not None:
        return f"TPU-{device.node}"
    server = device.key.server
    return f"{device.own_name}@{server}" if server else device.own_name


def selected(snapshot: Snapshot, selection: Selection) -> Snapshot:
    """The snapshot with only the selected processes and devices."""
    if selection == Selection():
        return snapshot
    processes = tuple(p for p in snapshot.processes if _wants_process(selection, p))
    if selection.pids:
        sure = {p.pid for p in processes if p.is_verified}
        processes = tuple(p for p in processes if p.is_verified or p.pid not in sure)
    kept = {p.key for p in processes}
    named = _named(snapshot, selection.devices)
    devices = tuple(
        d
        for d in snapshot.devices
        if _is_of(selection, d, kept)
        and (not selection.devices or d.key in named)
        and (not selection.chips or d.chip in selection.chips)
    )
    if selection.devices or selection.chips:
        owners = {owner for d in devices for owner in d.owners}
        processes = tuple(p for p in processes if p.key in owners)
    pids = {p.pid for p in processes}
    notices = tuple(n for n in snapshot.warnings if n.pid is None or n.pid in pids)
    if selection.devices or selection.chips:
        chips = {d.chip for d in devices}
        notices = tuple(n for n in notices if n.chip is None or n.chip in chips)
    return snapshot._replace(processes=processes, devices=devices, warnings=notices)


class Remark(NamedTuple):
    """A line below the tables."""

    text: str
    notice: Notice | None = None
    """What it says; None for a line about a source."""
    is_note: bool = False
    """True for what a source could not read beside what it could."""


def remarks(s: Snapshot) -> list[Remark]:
    """What a person can act on, each once: warnings, sources that were refused or failed, notes."""
    # Not loaded by commands that print no sentences.
    from tpusmi.report import concerns

    lines = [Remark(concerns.what(n), n) for n in s.warnings]
    warned = " ".join(line.text for line in lines)
    for o in s.sources:
        message = _without_silent_servers(s, o)
        if o.status in (DENIED, FAILED) and not (o.message and message in warned):
            lines.append(Remark(f"{o.source} {o.status}: {o.message}"))
        lines += [Remark(f"{o.source}: {note}", is_note=True) for note in _notes(s, o)]
    return lines


def _notes(s: Snapshot, source: Outcome) -> list[str]:
    """A source's notes that no warning repeats."""
    warned = " ".join(f"pid {n.pid} {n.message}: {n.advice}" for n in s.warnings)
    warned = " ".join((warned, *_of_silent_servers(s)))
    pids = {f"pid {n.pid} " for n in s.warnings if n.code == "no_metrics"}
    return [n for n in source.notes if n not in warned and not n.startswith(tuple(pids))]


def _without_silent_servers(s: Snapshot, source: Outcome) -> str:
    """What the source says beside that servers do not answer of which a warning says so."""
    message = source.message
    for text in _of_silent_servers(s):
        message = message.replace(text, "")
    return message.strip("; ")


def _of_silent_servers(s: Snapshot) -> list[str]:
    from tpusmi.merge.advice import SILENT_SERVER

    pids = {n.pid for n in s.warnings if n.code == SILENT_SERVER}
    return [
        server.message
        for server in s.servers
        if server.status == FAILED
        and server.message
        and (None if server.process is None else server.process.pid) in pids
    ]


def recent(snapshot: Snapshot) -> Snapshot:
    """The snapshot without jobs that ended long ago and monitors: screens would fill with them."""
    processes = []
    for p in snapshot.processes:
        is_monitor = p.loaded_only and p.interval_s is None  # neither a TPU nor an agent
        if not is_monitor and not _ended_long_ago(snapshot, p):
            processes.append(p)
    return snapshot._replace(processes=tuple(processes))


def _ended_long_ago(snapshot: Snapshot, process: Process) -> bool:
    ended = process.sampled_at_s
    return not process.is_living and (ended is None or snapshot.at_s - ended > DEAD_SHOWN_S)


def _wants_process(selection: Selection, process: Process) -> bool:
    by_user = not selection.users or is_of(process, selection.users)
    by_text = not selection.text or contains(process, selection.text)
    return by_user and by_text and (not selection.pids or process.pid in selection.pids)


def is_of(process: Process, users: Collection[str]) -> bool:
    """True for a process of one of these users, each by name or by number: names may come late."""
    return process.user in users or (process.uid is not None and str(process.uid) in users)


def contains(process: Process, text: str) -> bool:
    """True when the row of the process contains the text, in upper or lower case."""
    p = process
    row = f"{p.pid} {p.user or ''} {p.command} {p.phase or ''} {p.state}"
    return text.casefold() in row.casefold()


def _is_of(selection: Selection, device: Device, kept: set[ProcessKey]) -> bool:
    """True for its devices; and for one without an owner unless users or processes are selected."""
    if selection.users or selection.pids or selection.text:
        return any(owner in kept for owner in device.owners)
    return device.key.process is None or device.key.process in kept


def _named(snapshot: Snapshot, words: Collection[str]) -> set[DeviceKey]:
    """The devices that those words name. Each word in the first of the ways in which any device is
    called so.
    """
    called = [(d.key, _calls(snapshot, d)) for d in snapshot.devices] if words else []
    named: set[DeviceKey] = set()
    for word in words:
        by_way = ({key for key, ways in called if word in ways[n]} for n in range(WAYS))
        named |= next(filter(None, by_way), set())
    return named


def _calls(snapshot: Snapshot, d: Device) -> tuple[tuple[str, ...], ...]:
    """What a device is called in each of WAYS, the names that are its alone first."""
    node = d.node or ""
    pids = (f"{d.own_name}@{owner.pid}" for owner in d.owners)
    return (
        (d.name, uuid(snapshot, d), node, node.removeprefix("/dev/")),
        (d.own_name, *pids),
        (str(d.index),),
        (str(d.number),),
    )
