"""Copies a trace to its final place: whole or not at all, and never over another file."""

from __future__ import annotations

import errno
import os
import re
import shutil

from tpusmi.profiler.disk_room import would_fill
from tpusmi.text import clean
from tpusmi.trace.troubles import CaptureError, Trouble

NAME_MOST = 100
COPIES_MOST = 100
"""Names that are tried where a file of that name exists."""
CHUNK_BYTES = 1 << 20
_NO_LINKS = (errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EMLINK, errno.ENOSYS, errno.EXDEV)


def is_elsewhere(path: str) -> bool:
    """True for the address of something in a bucket, or in the web."""
    return re.match(r"[A-Za-z][A-Za-z0-9+.-]*://", path) is not None


def place(trace: str, folder: str, names: tuple[str, str], suffix: str) -> str:
    """Copy a file to `FOLDER/SESSION/HOST` and the suffix, where `names` are session and host: the
    path of the copy. Raises CaptureError.
    """
    session, host = (_as_name(name) for name in names)
    into = os.path.join(folder, session)
    if is_elsewhere(folder):
        sentence = f"{clean(folder, 200)} is not on this machine: save to a folder, then copy it"
        raise CaptureError(Trouble.FAILED, sentence)
    made = first_missing(into)
    try:
        os.makedirs(into, exist_ok=True)
        if would_fill(into, os.path.getsize(trace)):
            raise OSError(errno.ENOSPC, "it would take most of the free room")
        return _copy(trace, into, host, suffix)
    except OSError as error:
        remove_empty(into, made)
        why = error.strerror or str(error)
        sentence = f"Cannot save the trace in {clean(into, 200)}: {why}"
        raise CaptureError(Trouble.FAILED, sentence) from None


def _copy(trace: str, into: str, host: str, suffix: str) -> str:
    # Other tools list the folder: they skip names that begin with a dot.
    part = os.path.join(into, f".{host}.{os.getpid()}-{os.urandom(4).hex()}.part")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        with open(trace, "rb") as source, open(os.open(part, flags, 0o666), "wb") as copy:
            shutil.copyfileobj(source, copy, CHUNK_BYTES)
            copy.flush()
            os.fsync(copy.fileno())
        for number in range(1, COPIES_MOST + 1):
            name = host if number == 1 else f"{host}-{number}"
            path = os.path.join(into, f"{name}{suffix}")
            if _moved(part, path):
                return path
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST))
    finally:
        try:
            os.unlink(part)
        except FileNotFoundError:
            pass  # it has been moved


def _moved(part: str, path: str) -> bool:
    """False when there is a file of that name."""
    try:
        os.link(part, path)
        return True
    except FileExistsError:
        return False
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
    try:
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o666))
    except FileExistsError:
        return False
    try:
        os.replace(part, path)
    except OSError:
        os.unlink(path)
        raise
    return True


def _as_name(text: str) -> str:
    """A text as the name of a file, in characters that all tools take."""
    name = re.sub(r"[^A-Za-z0-9._-]", "_", text[:NAME_MOST], flags=re.ASCII).lstrip(".")
    return name or "unnamed"


def first_missing(path: str) -> str:
    """The outermost folder of a path that does not exist; empty when all of them do."""
    missing = ""
    while path and not os.path.lexists(path):
        missing, path = path, os.path.dirname(path)
    return missing


def remove_empty(path: str, until: str) -> None:
    """Remove the folders that were made for nothing, up to that one; those with files remain."""
    while until and len(path) >= len(until):
        try:
            os.rmdir(path)
        except FileNotFoundError:
            pass
        except OSError:
            return
        path = os.path.dirname(path)
