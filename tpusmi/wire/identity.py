"""Who a process is, by the kernel: what a segment says of the one that wrote it."""

# The agent and every command load this.

import os

from tpusmi.wire.layout import Identity

_NOT_SHOWN = (FileNotFoundError, NotADirectoryError, PermissionError, ProcessLookupError)


def me() -> Identity:
    """This process. Raises OSError when /proc is not mounted."""
    pid = os.getpid()
    ticks = start_ticks("/proc", pid)
    if ticks is None:
        raise OSError(f"/proc/{pid}/stat cannot be read")
    return Identity(pid, os.getuid(), ticks, boot_id("/proc"), pid_namespace("/proc"))


def start_ticks(proc: str, pid: int) -> int | None:
    """When a process started, in clock ticks since boot (field 22 of its stat); None when it is
    not there, or cannot be asked for.
    """
    try:
        return start_ticks_if_there(proc, pid)
    except OSError:
        return None


def start_ticks_if_there(proc: str, pid: int) -> int | None:
    """The same; None when it is not there, or not for this user to see.

    Raises OSError where that cannot be asked, as without a free descriptor.
    """
    try:
        with open(f"{proc}/{pid}/stat", "rb") as file:
            # The name in parentheses may itself hold parentheses and spaces.
            fields = file.read(4096).rpartition(b")")[2].split()
        # A zombie has ended and only its parent has not noticed, unless other threads of it live.
        gone = fields[0] in (b"Z", b"X") and int(fields[17]) < 2
        return None if gone else int(fields[19])
    except (*_NOT_SHOWN, IndexError, ValueError):
        return None


def real_uid(proc: str, pid: int) -> int | None:
    """The user who runs a process; None when it is not there or not visible."""
    try:
        with open(f"{proc}/{pid}/status", "rb") as file:
            line = next(line for line in file if line.startswith(b"Uid:"))
        return int(line.split()[1])
    except (OSError, StopIteration, IndexError, ValueError):
        return None


def boot_id(proc: str) -> bytes:
    """Sixteen bytes that change at every boot; zeros when the kernel does not tell."""
    try:
        with open(f"{proc}/sys/kernel/random/boot_id", encoding="ascii") as file:
            return bytes.fromhex(file.read(64).strip().replace("-", ""))[:16].ljust(16, b"\0")
    except (OSError, ValueError):
        return bytes(16)


def pid_namespace(proc: str, pid: str = "self") -> int:
    """The inode of a process's pid namespace; 0 when the kernel does not tell."""
    try:
        text = os.readlink(f"{proc}/{pid}/ns/pid")  # `pid:[4026531836]`: half the time of a stat()
    except OSError:
        return 0
    number = text.removeprefix("pid:[").removesuffix("]")
    return int(number) if number.isdecimal() else 0
