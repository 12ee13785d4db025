"""The platform's own agents: they are never stale and never killed."""

from __future__ import annotations

import os
import stat

NAMES = (
    "instance_agent",
    "tpu-runtime",
    "tpu_runtime",
    "vbarcontrolagent",
    "tpu-device-plugin",
    "tpu_device_plugin",
    "google_guest_agent",
    "google_osconfig_agent",
)
"""Of their programs, on TPU VMs and GKE's nodes."""

_COMM_LENGTH = 15
"""So much of a name the kernel keeps."""
_DELETED = " (deleted)"
_UNITS = frozenset(
    f"/system.slice/{name}.service" for n in NAMES for name in (n, n.replace("_", "-"))
)
_ROOT = 0


def is_platform_agent(process: str, comm: str, uid: int | None, groups: str) -> bool:
    """By what only root can arrange: a control group of the agent's system unit, or root's process
    of that name whose program lies where only root can write.

    `process` is `/proc/PID`; `comm` and `groups` are what its files of that name say. Nothing that
    a process says of itself makes it an agent: any user can call any program `tpu-runtime`.
    """
    # `0::/system.slice/x.service`, or of an older hierarchy `1:name=systemd:/system.slice/…`.
    if any(line.split(":", 2)[-1] in _UNITS for line in groups.splitlines()):
        return True
    if uid != _ROOT:
        return False
    try:
        program = os.readlink(f"{process}/exe").removesuffix(_DELETED)
    except OSError:
        return _is_name(comm)  # for root alone to read; its uid is the kernel's word
    named = _is_name(comm) or _is_name(os.path.basename(program))
    return named and _only_root_writes(f"{process}/root", os.path.dirname(program))


def _is_name(name: str) -> bool:
    return name in NAMES or name in {n[:_COMM_LENGTH] for n in NAMES}


def _only_root_writes(root: str, directory: str) -> bool:
    """True when a file in it can be put there by root alone. In a directory above with a sticky bit
    (/tmp) nobody else can move what root has there.
    """
    here = directory
    while True:
        try:
            found = os.stat(root + here)
        except OSError:
            return False
        others_write = found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
        kept = found.st_mode & stat.S_ISVTX and here != directory
        if found.st_uid != _ROOT or (others_write and not kept):
            return False
        if here in ("/", ""):
            return True
        here = os.path.dirname(here)
