"""The socket on which the demo's job serves metrics.

On a TPU a job serves its own. On the simulated host a process beside the job does that, and the
kernel would say that the port is not the job's.
"""

from __future__ import annotations

import ctypes
import os

from tpusmi.sources.libtpu.ports import SocketOwners
from tpusmi.sources.sockets import listeners

_PIDFD_GETFD = 438


def shared(port: int) -> list[int]:
    """A descriptor of the socket that listens on that port, for the job to have as well; none where
    the kernel does not give it.
    """
    found = (listeners() or {}).get(port)
    pid = None if found is None else SocketOwners("/proc").pid(found)
    if found is None or pid is None:
        return []
    try:
        return [_copied(pid, f"socket:[{found.inode}]")]
    except OSError:
        return []


def _copied(pid: int, link: str) -> int:
    """A descriptor of our own of what a process has open. Raises OSError."""
    for name in os.listdir(f"/proc/{pid}/fd"):
        if os.readlink(f"/proc/{pid}/fd/{name}") == link:
            break
    else:
        raise OSError(f"process {pid} has no {link}")
    handle = os.pidfd_open(pid)
    try:
        libc = ctypes.CDLL(None, use_errno=True)
        copy = int(libc.syscall(_PIDFD_GETFD, handle, int(name), 0))
    finally:
        os.close(handle)
    if copy < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return copy
