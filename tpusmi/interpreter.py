"""The Python that runs here, to start others like it."""

from __future__ import annotations

import errno
import os
import sys


def this_python() -> str:
    """The path of this interpreter. Raises OSError, with a sentence, where sys.executable is not
    it: in a program that embeds Python, a server that does, or a bundled application.
    """
    if reason := why_unknown():
        raise OSError(errno.ENOEXEC, reason)
    return sys.executable


def why_unknown() -> str:
    """Why this interpreter cannot be started again; empty when it can."""
    path = sys.executable
    if not path:
        return "sys.executable is empty"
    if getattr(sys, "frozen", False):
        return f"{path} is a bundled application"
    name = os.path.basename(path)
    if not name.startswith(("python", "pypy")):
        return f"sys.executable is {path}, which is not a Python by its name"
    try:
        is_this = os.path.samefile(path, "/proc/self/exe")
    except OSError as error:
        return f"sys.executable is {path}: {error.strerror}"
    return "" if is_this else f"sys.executable is {path}, which is not the program that runs here"
