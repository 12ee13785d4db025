"""Contents for arrays as large as those of a job on real chips: address space without RAM.

The demo trains a small model, and stands for the training of a large one. The large one's arrays
are real to JAX, with a size, a device, and the line that made them. Their bytes are one read-only
mapping that nothing touches: the kernel never gives it a page.
"""

from __future__ import annotations

import mmap
from typing import Any

import jax
import numpy as np

from tpusmi.chips import GIB

MAPPED_BYTES = 2 * GIB
"""No array is larger."""
PROBE_BYTES = 1 << 20
_NO_RESERVE = 0x4000
"""MAP_NORESERVE, which `mmap` has no name for before Python 3.13."""


class LargeArrays:
    """Gives what JAX is to make such arrays of. Where the system has no such mapping, or this JAX
    would copy it, that is empty: the demo's numbers are then those of the small model.
    """

    def __init__(self) -> None:
        self._bytes = _mapped()
        if self._bytes is not None and not _is_used_in_place(self._bytes[:PROBE_BYTES]):
            self._bytes = None

    def content(self, count: int, dtype: Any) -> np.ndarray[Any, Any]:
        """So many numbers, which nothing may read: computing with them would give them pages."""
        kind = np.dtype(dtype)
        if self._bytes is None:
            return np.zeros(0, kind)
        return self._bytes[: count * kind.itemsize].view(kind)


def _mapped() -> np.ndarray[Any, Any] | None:
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _NO_RESERVE
    try:
        pages = mmap.mmap(-1, MAPPED_BYTES, flags=flags, prot=mmap.PROT_READ)
    except OSError:
        return None
    return np.frombuffer(pages, np.uint8)


def _is_used_in_place(data: np.ndarray[Any, Any]) -> bool:
    """True when JAX makes an array of these bytes without copying them."""
    address: int = jax.device_put(data, jax.devices()[-1]).unsafe_buffer_pointer()
    return address == data.ctypes.data
