"""The platform's own agents: they are never stale and never killed."""

from __future__ import annotations

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


def is_platform_agent(program: str, comm: str) -> bool:
    """By the program that runs, or the name that the kernel has for it."""
    return program.rpartition("/")[2] in NAMES or comm in {n[:_COMM_LENGTH] for n in NAMES}
