"""What the terminal can show, whether it is that of a notebook cell, and what the user wants."""

import argparse
import os
import sys
from functools import cache
from typing import NamedTuple

CELL = "a notebook cell takes no keys, so this prints one plain table instead of the dashboard"
CELL_WAYS = "tpusmi.show() is a live panel; -m shows the dashboard anyway"
"""Only a host has these two: a fleet has neither."""

ANCESTORS_MOST = 100
CMDLINE_MOST = 4096
ENVIRON_MOST = 256 * 1024
CONTROLLING = os.makedev(5, 0)
"""The device number of /dev/tty, which is another name for the controlling terminal."""

_KERNELS = {
    b"ipykernel", b"ipykernel_launcher", b"colab_kernel_launcher",
    b"spyder_kernels.console", b"ipyparallel.engine",
}  # fmt: skip
"""Programs and modules that are kernels, even if no Jupyter server started them."""
_RELAYS = {b"sudo", b"su", b"runuser", b"doas", b"script", b"unbuffer", b"expect"}
"""Programs that make their own terminal, and pass on the keys typed into the previous one."""
_FORCING = ("FORCE_COLOR", "CLICOLOR_FORCE")
"""Variables that ask for colors without a terminal, unless they are 0."""
_HOSTED = ("COLAB_", "KAGGLE_", "JPY_PARENT_PID")
_OTHER_TERMINALS = ("TMUX", "STY", "SSH_TTY", "JUPYTER_SERVER_URL")


class Looks(NamedTuple):
    """How to draw: in color, with ASCII only."""

    color: bool
    ascii_only: bool


def looks_of(options: argparse.Namespace) -> Looks:
    """Flags take precedence over the environment, and the environment over the terminal."""
    ascii_only = options.ascii or not _is_utf8()
    if options.no_color or options.color:
        return Looks(not options.no_color, ascii_only)
    if os.environ.get("NO_COLOR"):
        return Looks(False, ascii_only)
    is_forced = any(os.environ.get(name, "") not in ("", "0") for name in _FORCING)
    if is_forced and not _is_set_by_kernel():  # a kernel sets them for all that a cell starts
        return Looks(True, ascii_only)
    plain = os.environ.get("TERM", "dumb") == "dumb"
    return Looks(sys.stdout.isatty() and not plain and not is_in_cell(), ascii_only)


def _is_utf8() -> bool:
    """False in the C locale: Python writes UTF-8 there, but the terminal may not show it."""
    encoding = (getattr(sys.stdout, "encoding", None) or "ascii").lower().replace("-", "")
    locales = (os.environ.get(name) for name in ("LC_ALL", "LC_CTYPE", "LANG"))
    return encoding.startswith("utf") and next(filter(None, locales), "") not in ("C", "POSIX")


def why_no_dashboard(is_requested: bool = False) -> str | None:
    """Why the dashboard cannot be shown, in a sentence; empty when the user does not expect it;
    None when it can be shown. `is_requested`: with --monitor.
    """
    if not sys.stdout.isatty() or not sys.stdin.isatty():
        return "the dashboard needs a terminal: one plain table instead" if is_requested else ""
    term = os.environ.get("TERM", "")
    if term in ("", "dumb", "unknown"):
        return f"TERM is {term or 'not set'}: one plain table instead of the dashboard"
    return CELL if not is_requested and is_in_cell() else None


def is_in_cell() -> bool:
    """True when stdin is the terminal of a notebook cell, where a user cannot type."""
    return sys.stdin.isatty() and _is_cell()


@cache
def _is_cell() -> bool:
    """True when a Jupyter kernel made the terminal on stdin, as it does for `!command`.

    A terminal of JupyterLab, and a tmux that was started from a cell, are made by other processes:
    a user can type there.
    """
    try:
        terminal = os.fstat(0).st_rdev
        if terminal == CONTROLLING:
            terminal = _process(os.getpid()).controlling
        maker = _maker(terminal)
    except (OSError, ValueError):
        return _is_hosted()
    return _is_kernel(maker) or (_is_python(maker.pid) and _is_set_by_kernel())


class _Process(NamedTuple):
    """The facts about a process that any user may read."""

    pid: int
    name: bytes
    parent: int
    controlling: int
    """Device number of its controlling terminal; 0 if it has none."""


def _process(pid: int) -> _Process:
    """Raises OSError when the process cannot be read, and ValueError for an unknown format."""
    with open(f"/proc/{pid}/stat", "rb") as file:
        head, _, rest = file.read(1024).rpartition(b") ")
    fields = rest.split(b" ", 5)
    number = int(fields[4])  # the kernel's own encoding, with the major number in the middle
    minor = number & 0xFF | number >> 12 & 0xFFF00
    controlling = os.makedev(number >> 8 & 0xFFF, minor) if number else 0
    return _Process(pid, head.partition(b" (")[2], int(fields[1]), controlling)


def _maker(terminal: int) -> _Process:
    """The process that made the terminal: the nearest ancestor that does not use it itself.

    Raises OSError or ValueError when that cannot be read, for example in another pid namespace.
    """
    pid = os.getppid()
    for _ in range(ANCESTORS_MOST):
        process = _process(pid)
        terminals = _terminals(process)
        if terminal not in terminals:
            if process.name not in _RELAYS or not terminals:
                return process
            terminal = terminals[0]
        pid = process.parent
    raise ValueError("endless ancestors")


def _terminals(process: _Process) -> list[int]:
    """The terminals that it uses. Colab gives a command its terminal only as stdin."""
    controlling = [process.controlling] if process.controlling else []
    try:
        stdin = os.stat(f"/proc/{process.pid}/fd/0")
    except OSError:  # it belongs to another user, or is closed
        return controlling
    is_terminal = os.major(stdin.st_rdev) in (4, *range(136, 144))
    return [stdin.st_rdev, *controlling] if is_terminal else controlling


def _is_kernel(process: _Process) -> bool:
    """True for a Jupyter kernel: by its program, or because a Jupyter server started it as one."""
    words = _read(f"/proc/{process.pid}/cmdline", CMDLINE_MOST).split(b"\0")
    if any(_module(word) in _KERNELS for word in words[:6]):
        return True
    started = b"JPY_PARENT_PID=%d" % process.parent
    return started in _read(f"/proc/{process.pid}/environ", ENVIRON_MOST).split(b"\0")


def _module(word: bytes) -> bytes:
    """The module's name, from the name itself, its file or the file of its package."""
    return word.removesuffix(b".py").removesuffix(b"/__main__").rpartition(b"/")[2]


def _is_python(pid: int) -> bool:
    try:
        return os.path.basename(os.readlink(f"/proc/{pid}/exe")).startswith("python")
    except OSError:
        return False


def _is_set_by_kernel() -> bool:
    """True when ipykernel has set the environment of a command, even if the kernel is embedded in a
    program with another name. A real terminal has its own name in TERM.
    """
    values = tuple(os.environ.get(name) for name in ("TERM", "PAGER", "GIT_PAGER"))
    return values == ("xterm-color", "cat", "cat")


def _is_hosted() -> bool:
    """The answer according to the environment, when the ancestors cannot be read."""
    if any(name in os.environ for name in _OTHER_TERMINALS):
        return False
    return _is_set_by_kernel() or any(name.startswith(_HOSTED) for name in os.environ)


def _read(path: str, most: int) -> bytes:
    """The start of a file; empty when it cannot be read."""
    try:
        with open(path, "rb") as file:
            return file.read(most)
    except OSError:
        return b""
