"""Whether this terminal is that of a notebook cell: `!tpusmi` has one, and a person cannot type
into it.
"""

from __future__ import annotations

import os
from functools import cache
from typing import NamedTuple

ANCESTORS_MOST = 100
CMDLINE_MOST = 4096
ENVIRON_MOST = 256 * 1024
CONTROLLING = os.makedev(5, 0)
"""What /dev/tty is, whichever terminal that stands for."""

_KERNELS = {
    *(b"ipykernel", b"ipykernel_launcher", b"colab_kernel_launcher"),
    *(b"spyder_kernels.console", b"ipyparallel.engine"),
}
"""Programs and modules that are kernels, also where no Jupyter server started them."""
_RELAYS = {b"sudo", b"su", b"runuser", b"doas", b"script", b"unbuffer", b"expect"}
"""Programs that make a terminal of their own and pass on what is typed into the one before it."""
_HOSTED = ("COLAB_", "KAGGLE_", "JPY_PARENT_PID")
_OTHER_TERMINALS = ("TMUX", "STY", "SSH_TTY", "JUPYTER_SERVER_URL")


@cache
def is_cell() -> bool:
    """True where a Jupyter kernel made the terminal on stdin, as it does for `!command`.

    A terminal of JupyterLab, and a tmux that was started from a cell, are made by other processes:
    a person types there.
    """
    try:
        terminal = os.fstat(0).st_rdev
        if terminal == CONTROLLING:
            terminal = _seen(os.getpid()).controlling
        maker = _maker(terminal)
    except (OSError, ValueError):
        return _is_hosted()
    return _is_kernel(maker) or (_is_python(maker.pid) and _is_set_by_kernel())


class _Process(NamedTuple):
    """What anyone may see of a process."""

    pid: int
    name: bytes
    parent: int
    controlling: int
    """Device number of its controlling terminal; 0 where it has none."""


def _seen(pid: int) -> _Process:
    """Raises OSError where that process is out of sight, and ValueError for a strange one."""
    with open(f"/proc/{pid}/stat", "rb") as file:
        head, _, rest = file.read(1024).rpartition(b") ")
    fields = rest.split(b" ", 5)
    number = int(fields[4])  # the kernel's own encoding, with the major number in the middle
    minor = number & 0xFF | number >> 12 & 0xFFF00
    controlling = os.makedev(number >> 8 & 0xFFF, minor) if number else 0
    return _Process(pid, head.partition(b" (")[2], int(fields[1]), controlling)


def _maker(terminal: int) -> _Process:
    """The process that made the terminal: the nearest ancestor that is not on it itself.

    Raises OSError or ValueError where that is out of sight, in another pid namespace say.
    """
    pid = os.getppid()
    for _ in range(ANCESTORS_MOST):
        process = _seen(pid)
        its = _terminals(process)
        if terminal not in its:
            if process.name not in _RELAYS or not its:
                return process
            terminal = its[0]
        pid = process.parent
    raise ValueError("endless ancestors")


def _terminals(process: _Process) -> list[int]:
    """Those that it is on. Colab gives a command's terminal to it as stdin, and as no more."""
    found = [process.controlling] if process.controlling else []
    try:
        stdin = os.stat(f"/proc/{process.pid}/fd/0")
    except OSError:  # of another user, or closed
        return found
    is_terminal = os.major(stdin.st_rdev) in (4, *range(136, 144))
    return [stdin.st_rdev, *found] if is_terminal else found


def _is_kernel(process: _Process) -> bool:
    """True for a Jupyter kernel: by its program, or because a Jupyter server started it as one."""
    words = _read(f"/proc/{process.pid}/cmdline", CMDLINE_MOST).split(b"\0")
    if any(_module(word) in _KERNELS for word in words[:6]):
        return True
    started = b"JPY_PARENT_PID=%d" % process.parent
    return started in _read(f"/proc/{process.pid}/environ", ENVIRON_MOST).split(b"\0")


def _module(word: bytes) -> bytes:
    """The module's name, whether the word is that name, its file or the file of its package."""
    return word.removesuffix(b".py").removesuffix(b"/__main__").rpartition(b"/")[2]


def _is_python(pid: int) -> bool:
    try:
        return os.path.basename(os.readlink(f"/proc/{pid}/exe")).startswith("python")
    except OSError:
        return False


def _is_set_by_kernel() -> bool:
    """True where ipykernel has prepared the environment for a command, also one embedded in a
    program of another name. Terminals name themselves in TERM.
    """
    told = tuple(os.environ.get(name) for name in ("TERM", "PAGER", "GIT_PAGER"))
    return told == ("xterm-color", "cat", "cat")


def _is_hosted() -> bool:
    """What the environment says, where the ancestors are out of sight."""
    if any(name in os.environ for name in _OTHER_TERMINALS):
        return False
    return _is_set_by_kernel() or any(name.startswith(_HOSTED) for name in os.environ)


def _read(path: str, most: int) -> bytes:
    """The start of a file; empty where it cannot be read."""
    try:
        with open(path, "rb") as file:
            return file.read(most)
    except OSError:
        return b""
