"""Requests for a capture, and a job's answers: small files beside its segment.

No port is open to anyone. Both files are JSON; the kernel says who wrote them, and only the user of
the job and root are believed. For the segment `71-12345.seg`:

    71-12345.ask            the request, which the agent removes when it takes it
    71-12345.NONCE.answer   the answer, replaced as the capture goes on; removed by the viewer when
                            it has the trace, which tells the agent to remove the trace
    71-12345.NONCE.capture  a directory that only that user can enter, with the trace, in some place
                            that has room: the answer says where
"""

import os
import stat
import time
from collections.abc import Callable

from tpusmi.text import clean
from tpusmi.wire import places
from tpusmi.wire.capture_messages import (
    NONCE_DIGITS,
    PATH_MOST,
    AgentAnswer,
    AgentRequest,
    answer_in,
    packed,
    request_in,
)

ASK, ANSWER, FOLDER = ".ask", ".answer", ".capture"
TRACE_SUFFIX = ".xplane.pb"
TRACE_NAME = f"trace{TRACE_SUFFIX}"
FILE_MOST_BYTES = 4096
LIFE_MOST_S = 120.0
"""Most time from now until a request expires."""
KEPT_S = 30.0
"""A trace or an answer that no viewer has fetched after this time is removed."""
WRITING_S = 2.0
"""An empty file younger than this is just being written."""
LEFTOVER_S = 900.0
"""Files of captures older than this are left over: no capture lasts that long."""

UNMAPPED = 65534

READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
"""How files, and the directory that has them, are opened: READ and _CREATE follow no link."""
Opener = Callable[[str, int], int]
"""Opens a name with flags, as os.open does."""


def stem(segment_path: str) -> str:
    """What the names of a segment and of the files beside it have in common: `71-12345`."""
    return os.path.basename(segment_path).removesuffix(places.SUFFIX)


def ask_name(segment_path: str) -> str:
    """The name of the request, in the directory of that segment."""
    return f"{stem(segment_path)}{ASK}"


def answer_name(segment_path: str, nonce: str) -> str:
    """The name of the answer to the request with that nonce, in the same directory."""
    return f"{stem(segment_path)}.{nonce}{ANSWER}"


def answer_path(segment_path: str, nonce: str) -> str:
    """Where that answer is, for the job itself."""
    return f"{os.path.dirname(segment_path)}/{answer_name(segment_path, nonce)}"


def folder_name(segment_path: str, nonce: str) -> str:
    """The name of the directory with the trace."""
    return f"{stem(segment_path)}.{nonce}{FOLDER}"


def new_nonce() -> str:
    """A nonce that nothing can predict."""
    return os.urandom(NONCE_DIGITS // 2).hex()


def is_safe_directory(status: os.stat_result, uid: int) -> bool:
    """True where only that user and root can replace files of that user."""
    writable_by_others = status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    is_sticky = bool(status.st_mode & stat.S_ISVTX)
    return status.st_uid in (0, uid) and (not writable_by_others or is_sticky)


def is_safe_place(path: str, uid: int) -> bool:
    """True where only that user and root can replace that directory, or one on the way to it.

    A place that cannot be looked at is not. In a user namespace root of the machine is UNMAPPED.
    """
    directory = os.path.realpath(path)
    while True:
        try:
            status = os.stat(directory)
        except OSError:
            return False
        is_of_root = status.st_uid == UNMAPPED
        if not is_safe_directory(status, UNMAPPED if is_of_root else uid):
            return False
        if directory == "/":
            return True
        directory = os.path.dirname(directory)


# The viewer


def write_request(
    directory_fd: int, segment_path: str, request: AgentRequest, uid: int
) -> tuple[int, int]:
    """Write the request for the job of that user. The caller removes it if the agent does not: the
    file with that device and inode.

    Raises FileExistsError where there is one already, and other OSErrors.
    """
    name = ask_name(segment_path)
    fd = os.open(name, _CREATE, 0o600, dir_fd=directory_fd)
    try:
        if os.fstat(fd).st_uid != uid:
            os.fchown(fd, uid, -1)  # in a user namespace root of the machine would be a stranger
        _write_whole(fd, packed(request))
        status = os.fstat(fd)
        return status.st_dev, status.st_ino
    except BaseException:
        os.unlink(name, dir_fd=directory_fd)
        raise
    finally:
        os.close(fd)


def read_answer(segment_path: str, nonce: str, uid: int, opener: Opener) -> AgentAnswer | None:
    """The newest answer to the request with that nonce; None where there is none that the user of
    the job has written. `opener` gets its name. Raises OSError where it cannot be read.
    """
    try:
        data = _read(answer_name(segment_path, nonce), opener, (uid,))
    except FileNotFoundError:
        return None
    answer = None if data is None else answer_in(data)
    return answer if answer is not None and answer.nonce == nonce else None


def is_place_of_trace(path: str, segment_path: str, nonce: str) -> bool:
    """True for a path at which an agent may have put the trace for that request: an absolute one,
    or one in the directory of the segment.
    """
    folder, name = os.path.split(path)
    return (
        len(path) <= PATH_MOST
        and path == clean(path, PATH_MOST)
        and (os.path.isabs(path) or "/" not in folder)
        and os.path.normpath(path) == path
        and name == TRACE_NAME
        and os.path.basename(folder) == folder_name(segment_path, nonce)
    )


# The agent


def is_waiting(segment_path: str) -> bool:
    """True where there is a request, or a file with the name of one: one call of the kernel."""
    try:
        os.lstat(f"{segment_path.removesuffix(places.SUFFIX)}{ASK}")
    except OSError:
        return False
    return True


def take_request(
    segment_path: str, identity: tuple[int, int, int], uid: int
) -> AgentRequest | None:
    """Remove the request and return it; None for one that cannot be believed, or is not for the
    process of that pid, start and pid namespace. Raises OSError.

    What another user has put there is left alone.
    """
    directory = os.open(os.path.dirname(segment_path), DIRECTORY)
    try:
        name = ask_name(segment_path)
        status = os.stat(name, dir_fd=directory, follow_symlinks=False)
        if not is_safe_directory(os.fstat(directory), uid) or not _is_ready(status, uid):
            return None
        try:
            data = _read(name, lambda name, flags: os.open(name, flags, dir_fd=directory), (uid, 0))
        finally:
            os.unlink(name, dir_fd=directory)
    finally:
        os.close(directory)
    request = None if data is None else request_in(data)
    return request if request is not None and request[1:4] == identity else None


def _is_ready(status: os.stat_result, uid: int) -> bool:
    """False for what another user has put there, and for a file that is just being written."""
    is_empty = stat.S_ISREG(status.st_mode) and not status.st_size
    is_new = is_empty and time.time() - status.st_mtime < WRITING_S
    return status.st_uid in (uid, 0) and not is_new and not stat.S_ISDIR(status.st_mode)


def is_expired(request: AgentRequest) -> bool:
    """True when the viewer no longer waits for it, or has a clock that cannot be right."""
    return not 0 < request.expires_s - time.time() <= LIFE_MOST_S


def write_answer(segment_path: str, answer: AgentAnswer) -> None:
    """Replace the answer at once. Raises OSError."""
    path = answer_path(segment_path, answer.nonce)
    new = f"{path}.new"
    try:
        fd = os.open(new, _CREATE, 0o600)
    except FileExistsError:
        os.unlink(new)
        fd = os.open(new, _CREATE, 0o600)
    try:
        _write_whole(fd, packed(answer))
    except BaseException:
        os.unlink(new)
        raise
    finally:
        os.close(fd)
    os.rename(new, path)


def is_fetched(segment_path: str, nonce: str) -> bool:
    """True when the answer is gone: the viewer has the trace, or no longer wants it."""
    return not os.path.lexists(answer_path(segment_path, nonce))


def is_leftover(name: str, status: os.stat_result, uid: int, now_s: float) -> bool:
    """True for a file or directory of a capture, of that user, that no process needs now."""
    is_of_capture = name.endswith((ASK, ANSWER, f"{ANSWER}.new", FOLDER))
    return is_of_capture and status.st_uid == uid and now_s - status.st_mtime > LEFTOVER_S


def _write_whole(fd: int, data: bytes) -> None:
    os.fchmod(fd, 0o600)  # the umask may have taken even our own rights
    if os.write(fd, data) != len(data):
        raise OSError(0, "cannot be written whole")


def _read(name: str, opener: Opener, owners: tuple[int, ...]) -> bytes | None:
    """The content of a small regular file of one of those users; None for any other. Raises
    OSError.
    """
    fd = opener(name, READ)
    try:
        status = os.fstat(fd)
        is_sound = (
            stat.S_ISREG(status.st_mode)
            and status.st_uid in owners
            and status.st_nlink == 1
            and status.st_size <= FILE_MOST_BYTES
        )
        return os.read(fd, FILE_MOST_BYTES) if is_sound else None
    finally:
        os.close(fd)
