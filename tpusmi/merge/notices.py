"""What a person can act on, of processes that still live and of the chips. No clock of its own."""

import re
from collections.abc import Iterator, Sequence
from typing import Any

from tpusmi.merge.causes import warnings
from tpusmi.merge.witnesses import stopped
from tpusmi.model import (
    DEVICE_METRICS,
    FAILED,
    HOLDERS,
    LIBTPU,
    LOST_AFTER_S,
    LOST_CODES,
    OK,
    OTHER_MOUNTS,
    STALE_HOLDER,
    SUSPECT_HOLDER,
    Chip,
    Device,
    Link,
    LockState,
    Notice,
    Process,
    Server,
    Snapshot,
    State,
    Verdict,
)
from tpusmi.model.servers import PASSING_MOST, UNUSABLE
from tpusmi.model.several import fresh, least
from tpusmi.text import counted, noun

UNUSED_S = 300.0


def notices(s: Snapshot) -> tuple[Notice, ...]:
    """Every notice of a snapshot: of the chips first, then of each living process, then of slices.

    None of a process that is not verified: its number may be another's.
    """
    collected = [*_of_sight(s), *_of_chips(s), *_of_strangers(s), *_of_lock_files(s)]
    collected += _of_servers(s)
    for p in s.processes:
        if not p.is_dead and p.is_verified:
            collected += _of_verdict(p)
            collected += p.warnings
            collected += _of_use(s, p)
    if s.slices:
        from tpusmi.merge.slice_notices import of_slice

        collected += [n for x in s.slices for n in of_slice(x)]
    return tuple(collected)


def _notice(code: str, message: str, pid: int | None = None, **more: Any) -> Notice:
    # Where nothing is wrong, the table is not loaded.
    from tpusmi.merge.advice import notice

    return notice(code, message, pid, **more)


def _of_sight(s: Snapshot) -> Iterator[Notice]:
    """That a node may have a holder that cannot be seen."""
    held = {node for p in s.processes if not p.is_dead for node in p.holds}
    if s.visibility.reason and not held.issuperset(s.visibility.nodes):
        message = next((o.message for o in s.sources if o.source == HOLDERS), "")
        reason = s.visibility.reason
        yield _notice("unseen_holders", message if reason in message else reason)


def _of_verdict(p: Process) -> Iterator[Notice]:
    """That a holder is stale, or may be. A process just detached from its shell is not."""
    age_s = None if p.life is None else p.life.age_s
    is_new = p.stale_code in LOST_CODES and age_s is not None and age_s < LOST_AFTER_S
    may_be = p.verdict == Verdict.MAYBE and not is_new
    text = f"holds the TPU and {p.judgment}"
    if p.verdict == Verdict.STALE:
        yield _notice(STALE_HOLDER, text, p.pid)
    elif may_be or (p.verdict == Verdict.UNKNOWN and p.stale_code):
        yield _notice(SUSPECT_HOLDER, text, p.pid)


def _of_chips(s: Snapshot) -> Iterator[Notice]:
    for chip in s.chips:
        for note in chip.notes:
            yield _notice("chip", f"chip {chip.index}: {note}", chip=chip.index)
        throttle = s.value("throttle_percent", chip.key)
        if throttle:
            text = f"chip {chip.index} is throttled by {throttle:.0f} %"
            yield _notice("throttled", text, chip=chip.index)
    for link in s.links:
        if link.health:
            yield _of_link(link, s.chips)


def _of_lock_files(s: Snapshot) -> Iterator[Notice]:
    """A lock file that keeps this user out, or that no longer keeps any process out."""
    cases = {LockState.BLOCKING: "lock_file", LockState.DELETED: "lock_file.deleted"}
    for file in s.lock_files:
        if (case := cases.get(file.state)) is not None:
            text, pids = f"{file.path}: {file.message}", ", ".join(map(str, file.pids))
            yield _notice(case, text, owner=file.owner or "its owner", pids=pids)


def _of_strangers(s: Snapshot) -> Iterator[Notice]:
    """Servers on a machine where no TPU can be seen."""
    if s.chips or any(p.holds for p in s.processes):
        return
    for server in s.servers:
        if server.ids:
            yield _notice(
                "no_chips",
                f"{server.address} reports {counted(len(server.ids), 'device')}, but no TPU can be "
                "seen on this machine: a container, a tunnel to another one, or a simulator",
            )


def _of_link(link: Link, chips: Sequence[Chip]) -> Notice:
    state = "has passing faults"
    if link.health > PASSING_MOST:
        state = "cannot be used" if link.health >= UNUSABLE else "has a lasting fault"
    chip = next((c.index for c in chips if c.index == link.chip), None)
    of = "" if chip is None else f" of chip {chip}"
    text = f"ICI link {link.name}{of} {state} (health {link.health})"
    return _notice(
        "ici_link" if link.health > PASSING_MOST else "ici_link.passing", text, chip=chip
    )


def _of_use(s: Snapshot, p: Process) -> Iterator[Notice]:
    """That its agent is silent, and how the process uses the chips it has."""
    if p.state == State.SILENT:
        yield _silent_agent(s, p)
    devices = [d for d in s.devices if p.key in d.owners and d.chip is not None]
    yield from _silent_servers(s, p, devices)
    wall = _wall(s, p)
    is_stale = p.verdict == Verdict.STALE  # it only has to be ended
    if p.holds and not is_stale and (why := _why_no_metrics(s, p, devices, has_no_agent=not wall)):
        yield why
    if p.holds and wall:
        yield _notice(OTHER_MOUNTS, wall, p.pid)
    idle_s = least(s, "idle_s", devices)
    if idle_s is not None and idle_s >= UNUSED_S and p.stale_code != "idle":
        yield _notice("unused", "has held the TPU idle", p.pid, since_s=idle_s)
    yield from warnings(s, p)


def _silent_agent(s: Snapshot, p: Process) -> Notice:
    since_s = None if p.sampled_at_s is None else max(0.0, s.at_s - p.sampled_at_s)
    why, case = "hung, stopped, or switched off", "silent_agent"
    if stopped(p):
        why, case = f"it is {stopped(p)}", "silent_agent.stopped"
    return _notice(case, f"its agent has stopped writing: {why}", p.pid, since_s=since_s)


def _silent_servers(s: Snapshot, p: Process, devices: Sequence[Device]) -> Iterator[Notice]:
    """That its libtpu does not answer, and the columns of its devices that are missing."""
    for server in s.servers:
        if server.process != p.key or server.status != FAILED:
            continue
        case = "silent_server" if server.is_service else "silent_server.stranger"
        if stopped(p):
            case = "silent_server.stopped"
        yield _silence(server, case, _missing_columns(s, devices), p.pid)


def _of_servers(s: Snapshot) -> Iterator[Notice]:
    """Servers of processes that cannot be seen, and do not answer. The server of a process that can
    be seen, and holds no TPU, is not libtpu.
    """
    for server in s.servers:
        is_unowned = server.process is None and server.stranger is None and server.is_service
        if is_unowned and server.status == FAILED:
            yield _silence(server, "silent_server.unowned", [], None)


def _silence(server: Server, case: str, columns: Sequence[str], pid: int | None) -> Notice:
    text = re.sub(r"has not answered for \d+ s", "does not answer", server.message)
    if columns:
        text += f": {', '.join(columns)} {noun(len(columns), 'is', 'are')} missing"
    return _notice(case, f"libtpu's {text}", pid, since_s=server.silent_s)


def _missing_columns(s: Snapshot, devices: Sequence[Device]) -> list[str]:
    """The columns that only libtpu's servers could fill now, of any of the devices."""
    titles = (
        m.column
        for m in DEVICE_METRICS
        if LIBTPU in m.trust
        and "." not in m.name
        and any(fresh(s, m.name, d) is None for d in devices)
    )
    return list(dict.fromkeys(titles))


def _wall(s: Snapshot, p: Process) -> str:
    """Why its agent cannot be seen, if it has one; empty where it can."""
    if p.interval_s is not None:
        return ""
    walls = (m for m in s.missing if m.code == OTHER_MOUNTS and m.process == p.key)
    text = next((m.message.removeprefix(f"pid {p.pid} ") for m in walls), "")
    return text.partition(": ")[0]  # its advice is in the table


def _why_no_metrics(
    s: Snapshot, p: Process, devices: Sequence[Device], has_no_agent: bool
) -> Notice | None:
    """Why a holder has no metrics, with what to do; None when it has some."""
    metrics = ("hbm_used_bytes", "duty_cycle_percent")
    if any(fresh(s, name, d) is not None for name in metrics for d in devices):
        return None
    held = f"holds {', '.join(p.holds[:2])}{'…' if len(p.holds) > 2 else ''}"
    servers = [server for server in s.servers if server.may_be_of(p)]
    if servers:
        empty = any(server.status == OK and not server.ids for server in servers)
        message = f"{held} and has no program loaded yet"
        return _notice("no_program", message, p.pid) if empty else None
    case, reason = _libtpus_reason(s, p)
    if not case and not (p.interval_s is None and has_no_agent):
        case = ".agent"
    return _notice(f"no_metrics{case}", f"{held} and {reason}", p.pid)


def _libtpus_reason(s: Snapshot, p: Process) -> tuple[str, str]:
    """Why libtpu gave none: not served, not reachable, grpcio not installed. And its case in the
    table of advice.
    """
    about = f"pid {p.pid} "
    libtpu = [source for source in s.sources if source.source == LIBTPU]
    missing = [source.message for source in libtpu if "not installed" in source.message]
    if missing:
        return ".package", missing[0]
    if p.environment.get("TPU_PROCESS_ADDRESSES") == "local":
        return ".local", "serves no metrics: TPU_PROCESS_ADDRESSES=local"
    own = [n.removeprefix(about) for o in libtpu for n in o.notes if n.startswith(about)]
    return "", (*own, "serves no metrics")[0]
