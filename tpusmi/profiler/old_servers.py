"""Profiler services that do not send the trace, and write it to a folder of their own host.

jaxlib does so before 0.7. Without the name of a folder it writes into the working directory of the
job, so each request names one.

Before jaxlib 0.9, recording host events over gRPC can stop the job for good: the profiler imports
TensorFlow's, and where that is missing, the thread of the call waits for itself, with Python's lock
in its hands (seen with 0.5.3, 0.6.2, 0.7.2, 0.8.0 and 0.8.2; not with 0.4.30, 0.4.38 and 0.9.0).
These versions lack the method GetSnapshot, and are asked for device events only.
"""

from __future__ import annotations

import os
import stat

from tpusmi.wire.capture_files import TRACE_SUFFIX

NOWHERE = "/proc/self/fdinfo"
"""A folder in which no process can make a file: a server that would write there fails."""


def take_over(folder: str, session: str, path: str, bytes_most: int) -> int | None:
    """Move the trace that a server has written below the folder to `path`: its size in bytes.

    None when there is none. A trace that is too large is removed; its size comes back all the same.
    Raises OSError.
    """
    own = os.path.join(folder, session)
    written = os.path.join(own, f"{session}{TRACE_SUFFIX}")
    try:
        status = os.lstat(written)
    except OSError:
        _remove_folder(own)
        return None
    if not stat.S_ISREG(status.st_mode) or status.st_size > bytes_most:
        os.unlink(written)
    else:
        os.rename(written, path)
        os.chmod(path, 0o600)
    _remove_folder(own)
    return status.st_size if stat.S_ISREG(status.st_mode) else None


def _remove_folder(path: str) -> None:
    try:
        os.rmdir(path)
    except OSError:
        pass  # it is not there, or the server has put other files into it
