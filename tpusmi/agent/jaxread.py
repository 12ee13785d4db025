"""What the agent reads of JAX: only modules that the job has loaded, and only once the job has made
a backend.
"""

from __future__ import annotations

import os
import sys
from typing import Any, NamedTuple

from tpusmi import chips
from tpusmi.text import clean

MEMORY_KEYS = (
    "bytes_in_use",
    "bytes_limit",
    "peak_bytes_in_use",
    "largest_free_block_bytes",
    "bytes_reserved",
    "num_allocs",
)
"""Keys of `memory_stats()`, in the order of wire.DEVICE_FIELDS."""


class DeviceState(NamedTuple):
    """The memory of one device: a value for each of MEMORY_KEYS, None where it reports none."""

    id: int
    memory: tuple[float | None, ...]
    error: str | None


def backend() -> Any | None:
    """The backend that the job has made; None until then.

    Never makes one, never waits, never imports JAX. Everything below is asked of this object and
    not of JAX, which would make a new backend if the job cleared this one meanwhile.
    """
    bridge = sys.modules.get("jax._src.xla_bridge")
    lock = getattr(bridge, "_backend_lock", None)
    if lock is None or lock.locked():
        return None  # not imported, or being made: the TPU comes many seconds after the CPU
    return getattr(bridge, "_default_backend", None)


def backend_is_visible() -> bool:
    """False when this JAX no longer has the names that tell whether a backend exists."""
    bridge = sys.modules.get("jax._src.xla_bridge")
    importing = getattr(getattr(sys.modules.get("jax"), "__spec__", None), "_initializing", True)
    return (
        bridge is None
        or importing
        or all(hasattr(bridge, n) for n in ("_backend_lock", "_default_backend"))
    )


def memory_profile(backend: Any) -> bytes:
    """JAX's memory profile: gzip'ed pprof.

    Holds the interpreter's lock for about 1 µs per live array.
    """
    profile: bytes = sys.modules["jax"].profiler.device_memory_profile(backend)
    return profile


def static_facts(backend: Any) -> dict[str, Any]:
    """Facts that stay while the backend lives: versions, platform, devices, process index."""
    jax = sys.modules["jax"]
    devices, all_devices = list(backend.local_devices()), list(backend.devices())
    first = devices[0] if devices else None
    platform = getattr(first, "platform", None)
    return {
        "platform": platform,
        "device_kind": getattr(first, "device_kind", None),
        "jax_version": getattr(jax, "__version__", None),
        "jaxlib_version": getattr(sys.modules.get("jaxlib"), "__version__", None),
        "libtpu_version": _libtpu_version() if platform == "tpu" else None,
        "platform_version": clean(str(getattr(backend, "platform_version", "")), 200),
        "process_index": _integer(getattr(first, "process_index", None)),
        "process_count": len({d.process_index for d in all_devices}),
        "device_count": len(all_devices),
        "devices": [_device_facts(d) for d in devices],
    }


def is_cpu_chosen() -> bool:
    """True when a person has chosen the CPU for the job, and JAX has not fallen back on it."""
    chosen = (_setting("jax_platforms"), _setting("jax_platform_name"))
    return any(text.partition(",")[0].strip().lower() == "cpu" for text in chosen)


def _setting(name: str) -> str:
    """One of JAX's settings, which has the environment as it was when JAX was imported; that
    variable now where this JAX has no such setting.
    """
    read = getattr(getattr(sys.modules.get("jax"), "config", None), "_read", None)
    try:
        return str(read(name) or "") if read else os.environ.get(name.upper(), "")
    except (AttributeError, KeyError):
        return os.environ.get(name.upper(), "")


def peak_flops_per_s(kind: str | None, device_count: int) -> float | None:
    """bf16 peak of so many devices of that kind; None for an unknown kind."""
    generation = None if kind is None else chips.by_kind(kind)
    peak = None if generation is None else chips.peak_flops_per_device(generation)
    return None if peak is None else peak * device_count


def tpu_functions(sys_root: str = "/sys") -> int:
    """How many TPU functions the PCI bus shows; 0 where it cannot be read."""
    bus = f"{sys_root}/bus/pci/devices"
    try:
        names = os.listdir(bus)
    except OSError:
        return 0
    return sum(1 for name in names if _is_tpu(f"{bus}/{name}"))


def _is_tpu(function: str) -> bool:
    try:
        with open(f"{function}/vendor", encoding="ascii") as vendor:
            if int(vendor.read(16), 16) != chips.GOOGLE_PCI_VENDOR:
                return False
        with open(f"{function}/device", encoding="ascii") as device:
            return int(device.read(16), 16) in chips.TPU_PCI_DEVICE_IDS
    except (OSError, ValueError):
        return False


def device_state(device: Any) -> DeviceState:
    """The memory of a device, or why it cannot be read: then the others still are."""
    try:
        stats = device.memory_stats() or {}
    except Exception as error:  # noqa: BLE001  # a plugin may raise anything
        why = clean(str(error), 120) or repr(error)
        return DeviceState(device.id, (None,) * len(MEMORY_KEYS), why)
    return DeviceState(device.id, tuple(stats.get(key) for key in MEMORY_KEYS), None)


def _device_facts(device: Any) -> dict[str, Any]:
    coords = getattr(device, "coords", None)
    return {
        "id": _integer(getattr(device, "id", None)),
        "kind": getattr(device, "device_kind", None),
        "coords": None if coords is None else [int(c) for c in coords],
        "core_on_chip": _integer(getattr(device, "core_on_chip", None)),
        "local_hardware_id": _integer(getattr(device, "local_hardware_id", None)),
        "slice_index": _integer(getattr(device, "slice_index", None)),
    }


def _integer(value: Any) -> int | None:
    return value if isinstance(value, int) else None


def _libtpu_version() -> str | None:
    import importlib.metadata

    try:
        return importlib.metadata.version("libtpu")
    except importlib.metadata.PackageNotFoundError:
        return None
