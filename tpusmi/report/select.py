"""The selected part of a Snapshot: by user, by process, by device."""

from collections.abc import Collection
from typing import NamedTuple

from tpusmi.model import (
    DENIED,
    FAILED,
    Device,
    Notice,
    Outcome,
    Process,
    ProcessKey,
    Snapshot,
)
from tpusmi.text import noun

NO_MATCH = "No device or process matches."
NO_PROCESS = "No process matches."
"""Where devices are shown, which a selection of processes leaves in sight."""
DEAD_SHOWN_S = 15 * 60.0
"""A dead job stays on screens this long; --json lists it as long as its segment exists."""


class Selection(NamedTuple):
    """What to keep. An empty field keeps everything."""

    users: tuple[str, ...] = ()
    pids: tuple[int, ...] = ()
    devices: tuple[str, ...] = ()
    """Devices by their names (`cpu:3`, `cpu:3@4321`), UUIDs, PCI addresses, nodes (`vfio/0`),
    indexes or ranges of indexes. A number that is not an index is the one in a name.
    """
    chips: tuple[int, ...] = ()
    """By index: all devices of each."""
    text: str = ""
    """A filter, as in the dashboard: keeps processes that match each of its words."""
    visible_chips: tuple[int, ...] = ()
    """Chips that the variables of `--only-visible` name: of the others, nothing is kept."""
    visible_nodes: tuple[str, ...] = ()
    """Nodes that they name: `/dev/vfio/0`."""

    @property
    def names_devices(self) -> bool:
        """True when it selects devices, and with them their processes."""
        return bool(self.devices or self.chips or self.visible_chips or self.visible_nodes)

    @property
    def names_processes(self) -> bool:
        """True when it selects processes."""
        return bool(self.users or self.pids or self.text)


def selected(snapshot: Snapshot, selection: Selection, devices_alone: bool = False) -> Snapshot:
    """The snapshot with only the selected processes and devices.

    Users, processes and text select processes: the devices of the machine stay in sight, as in
    nvitop. With `devices_alone`, for output without processes, only the devices of the selected
    processes are kept.
    """
    if selection == Selection():
        return snapshot
    processes = tuple(p for p in snapshot.processes if _wants_process(selection, p))
    if selection.text:
        processes = _matching(snapshot, processes, selection.text)
    if selection.pids:
        sure = {p.pid for p in processes if p.is_verified}
        processes = tuple(p for p in processes if p.is_verified or p.pid not in sure)
    kept = {p.key for p in processes}
    by_owner = devices_alone and selection.names_processes
    devices = tuple(d for d in _in_sight(snapshot, selection) if _is_of(d, kept, by_owner=by_owner))
    if selection.names_devices:
        owners = {owner for d in devices for owner in d.owners}
        processes = tuple(p for p in processes if p.key in owners)
    pids = {p.pid for p in processes}
    notices = tuple(n for n in snapshot.warnings if n.pid is None or n.pid in pids)
    if selection.devices or selection.chips:
        chips = {d.chip for d in devices}
        notices = tuple(n for n in notices if n.chip is None or n.chip in chips)
    kept = {p.key for p in processes}
    slices = tuple(x for x in snapshot.slices if x.process in kept)
    return snapshot._replace(processes=processes, devices=devices, warnings=notices, slices=slices)


def _in_sight(snapshot: Snapshot, selection: Selection) -> list[Device]:
    """The devices that the selection names; all of them when it names none."""
    devices = [*snapshot.devices]
    if selection.devices:
        from tpusmi.report.device_names import named

        keys = named(snapshot, selection.devices)
        devices = [d for d in devices if d.key in keys]
    for chips in (selection.chips, selection.visible_chips):
        devices = [d for d in devices if d.chip in chips] if chips else devices
    if selection.visible_nodes:
        devices = [d for d in devices if d.node in selection.visible_nodes]
    return devices


def missing(snapshot: Snapshot, selection: Selection) -> list[str]:
    """The devices and chips of a selection that are not there, as a user wrote them."""
    devices = []
    if selection.devices:
        from tpusmi.report.device_names import unknown_words

        devices = [f"device {word}" for word in unknown_words(snapshot, selection.devices)]
    present = {c.index for c in snapshot.chips} | {d.chip for d in snapshot.devices}
    chips = sorted(set(selection.chips) - present)
    if chips:
        from tpusmi.report.words import ranges  # here, because --json does not need it

        devices.append(f"{noun(len(chips), 'chip')} {ranges(chips)}")
    return devices


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
        and (server.stranger if server.process is None else server.process.pid) in pids
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
    return by_user and (not selection.pids or process.pid in selection.pids)


def _matching(s: Snapshot, processes: tuple[Process, ...], text: str) -> tuple[Process, ...]:
    from tpusmi.report.filters import about, matcher  # here, because most commands have no filter
    from tpusmi.report.rows import IndexedSnapshot

    passes, at = matcher(text), IndexedSnapshot(s)
    return tuple(p for p in processes if passes(about(at, p)))


def is_of(process: Process, users: Collection[str]) -> bool:
    """True for a process of one of these users, each by name or by number: names may come late."""
    return process.user in users or (process.uid is not None and str(process.uid) in users)


def _is_of(device: Device, kept: set[ProcessKey], by_owner: bool) -> bool:
    """True for the devices of those processes; and for all of the machine unless `by_owner`."""
    if by_owner:
        return any(owner in kept for owner in device.owners)
    own = device.key.process
    return own is None or device.chip is not None or own in kept
