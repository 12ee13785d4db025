"""The identity of a process, as the kernel reports it: what a segment says about its writer."""

import os

from tpusmi.wire.layout import Identity

_NOT_SHOWN = (FileNotFoundError, NotADirectoryError, PermissionError, ProcessLookupError)


def me() -> Identity:
    """This process. Raises OSError when /proc is not mounted."""
    pid = os.getpid()
    ticks = start_ticks("/proc", pid)
    if ticks is None:
        raise OSError(f"/proc/{pid}/stat cannot be read")
    namespace = pid_namespace("/proc")
    return Identity(pid, os.getuid(), ticks, boot_id=boot_id("/proc"), pid_namespace=namespace)


def start_ticks(proc: str, pid: int) -> int | None:
    """When a process started, in clock ticks since boot (field 22 of its stat); None when it has
    ended, or cannot be read.
    """
    try:
        return start_ticks_if_there(proc, pid)
    except OSError:
        return None


def start_ticks_if_there(proc: str, pid: int) -> int | None:
    """When a process started, as start_ticks() says; None when it has ended, or is hidden from this
    user.

    Raises OSError where it cannot be read, as without a free descriptor.
    """
    try:
        with open(f"{proc}/{pid}/stat", "rb") as file:
            # The name in parentheses may itself hold parentheses and spaces.
            fields = file.read(4096).rpartition(b")")[2].split()
        # A zombie has ended and its parent has not noticed, unless other threads of it are alive.
        has_ended = fields[0] in (b"Z", b"X") and int(fields[17]) < 2
        return None if has_ended else int(fields[19])
    except (*_NOT_SHOWN, IndexError, ValueError):
        return None


def real_uid(proc: str, pid: int) -> int | None:
    """The user who runs a process; None when it is not there or not visible."""
    return _status_number(proc, pid, b"Uid:", 1)


def inner_pid(proc: str, pid: int) -> int | None:
    """The pid of a process in its own pid namespace, the last of NSpid; None when it is not there
    or not visible.
    """
    return _status_number(proc, pid, b"NSpid:", -1)


def _status_number(proc: str, pid: int, name: bytes, word: int) -> int | None:
    try:
        with open(f"{proc}/{pid}/status", "rb") as file:
            line = next(line for line in file if line.startswith(name))
        return int(line.split()[word])
    except (OSError, StopIteration, IndexError, ValueError):
        return None


def boot_id(proc: str) -> bytes:
    """Sixteen bytes that change at every boot; zeros when it cannot be read."""
    try:
        with open(f"{proc}/sys/kernel/random/boot_id", encoding="ascii") as file:
            return bytes.fromhex(file.read(64).strip().replace("-", ""))[:16].ljust(16, b"\0")
    except (OSError, ValueError):
        return bytes(16)


def pid_namespace(proc: str, pid: str = "self") -> int:
    """The inode of a process's pid namespace; 0 when it cannot be read."""
    try:
        text = os.readlink(f"{proc}/{pid}/ns/pid")  # `pid:[4026531836]`: half the time of a stat()
    except OSError:
        return 0
    number = text.removeprefix("pid:[").removesuffix("]")
    return int(number) if number.isdecimal() else 0
