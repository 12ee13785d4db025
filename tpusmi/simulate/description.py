"""simulated.json: everything about a simulated host that its own processes and viewers need.

Standard library only, and little of it: see workload.py.
"""

from __future__ import annotations

import errno
import marshal
import os
import stat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

FILE = "simulated.json"
OWN_PROC = "/machine"
"""In the host's directory: its own loadavg, meminfo and uptime. Its /proc leads to the real one."""
FAST_FILE = ".simulated.marshal"
"""The same for our own interpreter: importing json takes as long as starting it."""
VERSION = 1
SIZE_MOST = 16 * 1024 * 1024
OTHERS_WRITE = 0o022


def write(directory: str, description: dict[str, Any]) -> None:
    """Write it in one go: a viewer never sees half of it."""
    import json

    text = json.dumps(description, indent=1)
    _replace(f"{directory}/{FAST_FILE}", marshal.dumps(json.loads(text)))
    _replace(f"{directory}/{FILE}", text.encode())


def _replace(path: str, content: bytes) -> None:
    with open(f"{path}.new", "wb") as file:
        file.write(content)
    os.replace(f"{path}.new", path)


def read(directory: str) -> dict[str, Any]:
    """The description of the host in that directory. Raises ValueError with a sentence."""
    import json

    try:
        described = json.loads(content(f"{directory}/{FILE}"))
    except (OSError, ValueError, RecursionError) as error:
        reason = getattr(error, "strerror", None) or "not readable"
        raise ValueError(f"no simulated host in {directory}: {FILE}: {reason}") from error
    if not isinstance(described, dict) or described.get("version") != VERSION:
        raise ValueError(f"the host in {directory} was simulated by another version of tpusmi")
    keeper, ports = described.get("keeper"), described.get("ports")
    if not (_are_numbers(ports) and _are_numbers(keeper) and len(keeper or ()) == 2):
        raise ValueError(f"no simulated host in {directory}: {FILE}: not readable")
    return described


def content(path: str) -> bytes:
    """Content of a file that any user may have written. Raises OSError, and never waits."""
    return _content(os.open(path, _READ))


_READ = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC


def _content(file: int, only_ours: bool = False) -> bytes:
    """Content of an open file, whose path may lead elsewhere since. Closes it."""
    try:
        status = os.fstat(file)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, "not a file")
        if only_ours and not _is_ours(status):
            raise OSError(errno.EPERM, "another user's")
        return os.pread(file, SIZE_MOST, 0)
    finally:
        os.close(file)


def _are_numbers(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, int) for item in value)


def read_fast(directory: str) -> dict[str, Any]:
    """The same, for the host's own processes. Another user's file could do harm this way: it is
    read as JSON.
    """
    try:
        packed = _packed(directory)
    except OSError:
        return read(directory)
    described: dict[str, Any] = marshal.loads(packed)
    return described


def _packed(directory: str) -> bytes:
    """What the fast file holds. Raises OSError unless it and its directory are ours alone."""
    folder = os.open(directory, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        status = os.fstat(folder)
        if not _is_ours(status) or status.st_mode & OTHERS_WRITE:
            raise OSError(errno.EPERM, "others can write into it")
        file = os.open(FAST_FILE, _READ | os.O_NOFOLLOW, dir_fd=folder)
    finally:
        os.close(folder)
    return _content(file, only_ours=True)


def _is_ours(status: os.stat_result) -> bool:
    return status.st_uid in (0, os.geteuid())


def is_kept(description: dict[str, Any]) -> bool:
    """True while the host's keeper lives."""
    return lives(*description["keeper"])


def lives(pid: int, start_ticks: int) -> bool:
    """True while that process lives. As wire.places says it, whose imports take too long."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read(4096).rpartition(b")")[2].split()
        return fields[0] not in (b"Z", b"X") and int(fields[19]) == start_ticks
    except (OSError, ValueError, IndexError):
        return False
