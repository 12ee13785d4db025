"""What /proc says about a process, which may vanish between two reads, and put any bytes there."""

import os
from collections.abc import Iterable
from itertools import pairwise
from typing import NamedTuple

from tpusmi.sources.mounts import OVERLAY
from tpusmi.text import WORDS_MOST, clean, command_line, redacted, whole_number
from tpusmi.wire import mountinfo

READ_MOST = 64 * 1024
SIGHUP, SIGKILL = 1, 9
_EXITING, _OF_KERNEL = 0x4, 0x200000
"""PF_EXITING and PF_KTHREAD of the kernel's process flags."""

ENVIRONMENT = frozenset((
    "TPU_RUNTIME_METRICS_PORTS", "TPU_PROCESS_ADDRESSES", "TPU_PROCESS_PORT",
    "TPU_PROCESS_BOUNDS", "TPU_CHIPS_PER_PROCESS_BOUNDS", "TPU_CHIPS_PER_HOST_BOUNDS",
    "TPU_VISIBLE_CHIPS", "TPU_VISIBLE_DEVICES", "TPU_VISIBLE_DEVICE_PATHS",
    "CHIPS_PER_HOST_BOUNDS", "TPU_TOPOLOGY_WRAP", "WRAP",
    "TPU_ACCELERATOR_TYPE", "TPU_TOPOLOGY", "TPU_WORKER_ID", "TPU_SKIP_MDS_QUERY",
    "TPU_LOAD_LIBRARY", "ALLOW_MULTIPLE_LIBTPU_LOAD", "LIBTPU_INIT_ARGS", "JAX_PLATFORMS",
))  # fmt: skip
"""The only variables of other processes that are read: none of them carries a secret."""


class Stat(NamedTuple):
    """`/proc/PID/stat` of a process or of one thread."""

    state: str
    parent: int
    group: int
    session: int
    has_terminal: bool
    exiting: bool
    of_kernel: bool
    """A kernel thread, which never has descriptors."""
    cpu_ticks: int
    threads: int
    start_ticks: int

    @property
    def has_ended(self) -> bool:
        """A zombie, whose other threads may still be alive."""
        return self.state in "ZXx"

    @property
    def is_stopped(self) -> bool:
        """True while a signal or a debugger keeps it from running."""
        return self.state in "Tt"

    @property
    def is_gone(self) -> bool:
        """It has ended, with all its threads."""
        return self.has_ended and self.threads < 2


class ProcessStatus(NamedTuple):
    """The part of `/proc/PID/status` that `stat` lacks."""

    uid: int | None
    inner_pid: int | None
    """Its pid in the innermost pid namespace, where that is not ours."""
    kill_pending: bool
    expects_hangup: bool
    """It ignores SIGHUP, as under nohup, or handles it."""


def read_stat(process: str) -> Stat | None:
    """The stat of `/proc/PID` or `/proc/PID/task/TID`; None when it is gone."""
    try:
        with open(f"{process}/stat", "rb") as file:
            # The name in parentheses may itself hold parentheses and spaces.
            fields = file.read(READ_MOST).rpartition(b")")[2].split()
        numbers = [int(field) for field in fields[1:20]]
        return Stat(
            state=fields[0].decode("ascii", "replace"),
            parent=numbers[0],
            group=numbers[1],
            session=numbers[2],
            has_terminal=bool(numbers[3]),
            exiting=bool(numbers[5] & _EXITING),
            of_kernel=bool(numbers[5] & _OF_KERNEL),
            cpu_ticks=numbers[10] + numbers[11],
            threads=numbers[16],
            start_ticks=numbers[18],
        )
    except (OSError, IndexError, ValueError):
        return None


def is_stopped(process: str) -> bool:
    """True while a signal or a debugger keeps the process of `/proc/PID` from running."""
    stat = read_stat(process)
    return stat is not None and stat.is_stopped


def waits_for_sigcont(process: str) -> bool:
    """True where SIGSTOP or Ctrl-Z keeps it from running: a debugger lets it go on by itself."""
    stat = read_stat(process)
    return stat is not None and stat.state == "T"


def read_status(process: str) -> ProcessStatus:
    """Its status; a process that is gone has no user and no pending signals."""
    lines = dict(line.partition(":")[::2] for line in read(f"{process}/status").split("\n"))
    uids, inner = lines.get("Uid", "").split(), lines.get("NSpid", "").split()
    pending = _mask(lines, "SigPnd") | _mask(lines, "ShdPnd")
    return ProcessStatus(
        uid=whole_number(uids[0]) if uids else None,
        inner_pid=whole_number(inner[-1]) if len(inner) > 1 else None,
        kill_pending=_has(pending, SIGKILL),
        expects_hangup=_has(_mask(lines, "SigIgn") | _mask(lines, "SigCgt"), SIGHUP),
    )


def _mask(lines: dict[str, str], name: str) -> int:
    try:
        return int(lines.get(name, "0"), 16)
    except ValueError:
        return 0


def _has(mask: int, signal: int) -> bool:
    return bool(mask >> (signal - 1) & 1)


def uptime_s(proc: str) -> float | None:
    """Time since the boot; None where the kernel does not say."""
    try:
        return float(read(f"{proc}/uptime").split()[0])
    except (IndexError, ValueError):
        return None


def ticks_per_s() -> int:
    """Frequency of the kernel's clock in /proc."""
    return os.sysconf("SC_CLK_TCK")


def environment(process: str) -> dict[str, str]:
    """Its variables among ENVIRONMENT; empty when they may not be read."""
    text = f"\0{read(f'{process}/environ')}\0"
    places = sorted((text.find(f"\0{name}="), name) for name in ENVIRONMENT)
    values = ((name, text[at:].split("\0", 2)[1]) for at, name in places if at >= 0)
    return {name: clean(redacted(value.partition("=")[2]), 300) for name, value in values}


def command(process: str) -> str:
    """Its command line with secrets hidden; its name where it has none."""
    return command_of(arguments(process), process)


def command_of(words: Iterable[str], process: str) -> str:
    """The same for a command line that was read before."""
    return command_line(words) or clean(read(f"{process}/comm"), 64)


def arguments(process: str) -> list[str]:
    """Its raw command line, not safe to show; empty for a kernel thread."""
    return read(f"{process}/cmdline").rstrip("\0").split("\0", WORDS_MOST)[:WORDS_MOST]


def read(path: str, most: int = READ_MOST) -> str:
    """The first bytes of a file as text; empty when it cannot be read."""
    try:
        with open(path, "rb") as file:
            return file.read(most).decode("utf-8", "replace")
    except OSError:
        return ""


def flags_and_mount(process: str, descriptor: str) -> tuple[int, str]:
    """The flags with which a descriptor was opened, 0 where the kernel does not say, and the id of
    its mount, empty then. Raises OSError.
    """
    with open(f"{process}/fdinfo/{descriptor}", "rb") as file:
        words = file.read(READ_MOST).split()
    fields = dict(pairwise(words))
    try:
        flags = int(fields.get(b"flags:", b"0"), 8)
    except ValueError:
        flags = 0
    return flags, _ascii(fields.get(b"mnt_id:", b""))


def containers(groups: str) -> list[str]:
    """Ids of the containers that a process is in, innermost last, by its `cgroup` file."""
    import re

    return re.findall(r"(?<![0-9a-f])[0-9a-f]{64}(?![0-9a-f])", groups)


def mount_types(process: str, most: int = mountinfo.MOST_BYTES) -> dict[str, str]:
    """The file system of each mount that the process sees, by its id, as far as `most` bytes of its
    list tell.
    """
    return {_ascii(m.number): _ascii(m.kind) for m in _mounts(process, most)}


def overlays(process: str) -> dict[str, str]:
    """The device number of each overlay that the process sees, by the id of its mount."""
    found = _mounts(process, mountinfo.MOST_BYTES)
    return {_ascii(m.number): _ascii(m.device) for m in found if m.kind == OVERLAY}


def _mounts(process: str, most: int) -> list[mountinfo.Mount]:
    try:
        return [*mountinfo.mounts(mountinfo.listed(process, most))]
    except OSError:
        return []


def _ascii(text: bytes) -> str:
    return text.decode("ascii", "replace")


def is_ours(proc: str) -> bool:
    """True when this /proc is of our pid namespace: another one numbers processes differently."""
    try:
        return os.readlink(f"{proc}/self") == str(os.getpid())
    except OSError:
        return False


def threads(process: str) -> list[str]:
    """Directories of its threads; empty when it is gone or may not be inspected."""
    try:
        return [f"{process}/task/{name}" for name in os.listdir(f"{process}/task")]
    except OSError:
        return []


def where_it_sleeps(process: str) -> str:
    """The state of its main thread, and where in the kernel it waits: `state D in vfio_unpin`."""
    stat = read_stat(process)
    place = clean(read(f"{process}/wchan"), 40)
    state = "state ?" if stat is None else f"state {stat.state}"
    return f"{state} in {place}" if place not in ("", "0") else state


def standard_streams(process: str) -> list[str]:
    """What its standard input, output and error are open on, as far as that can be seen."""
    links = []
    for number in range(3):
        try:
            links.append(clean(os.readlink(f"{process}/fd/{number}"), 80))
        except OSError:
            continue
    return links
