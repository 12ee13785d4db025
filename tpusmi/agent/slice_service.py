"""The coordination service of a multi-host JAX job: what the agent uses of JAX's own client.

JAX keeps the client in a private module, so every name is looked for before it is used. Only the
functions for text are: those for bytes are newer, and some versions make Python objects in them
without the interpreter's lock. Each call leaves the lock to the job, and may take for ever when the
coordinator hangs, so only a thread that is not waited for may make one.
"""

from __future__ import annotations

import sys
import zlib
from typing import Any, NamedTuple

from tpusmi.wire.slice_summary import PREFIX

_USED = ("key_value_set", "key_value_dir_get", "key_value_delete")


class CoordinationService(NamedTuple):
    """The service as this process sees it."""

    client: Any
    index: int  # type: ignore[assignment]  # hides tuple.index
    """Number of this process."""
    count: int  # type: ignore[assignment]  # hides tuple.count
    """How many processes the job has."""
    job: int
    """The same in all processes of the job, and another in most other jobs."""

    @property
    def trouble(self) -> str:
        """Why this JAX cannot be used; empty when it can."""
        missing = [name for name in _USED if not callable(getattr(self.client, name, None))]
        version = getattr(sys.modules.get("jax"), "__version__", "")
        return f"the client of JAX {version} has no {missing[0]}()" if missing else ""

    def is_current(self) -> bool:
        """False after the job has left the service, or has joined another."""
        return getattr(_state(), "client", None) is self.client

    def put(self, text: str) -> None:
        """Replace what this process says. Raises what the client raises."""
        self.client.key_value_set(f"{PREFIX}{self.index}", text, allow_overwrite=True)

    def remove(self) -> None:
        """Take back what it says. Raises what the client raises."""
        self.client.key_value_delete(f"{PREFIX}{self.index}")

    def texts(self) -> dict[int, str]:
        """What every process says, by its number. Raises what the client raises."""
        texts = {}
        for key, text in self.client.key_value_dir_get(PREFIX):
            number = key.removeprefix(PREFIX)
            if number.isdecimal() and len(number) < 10 and int(number) < self.count:
                texts[int(number)] = text
        return texts


def find() -> CoordinationService | None:
    """The service of this job; None in a job of one process, and in one that did not call
    jax.distributed.initialize().
    """
    state = _state()
    client = getattr(state, "client", None)
    index, count = getattr(state, "process_id", None), getattr(state, "num_processes", None)
    if client is None or not isinstance(index, int) or not isinstance(count, int) or count < 2:
        return None
    address = str(getattr(state, "coordinator_address", ""))
    return CoordinationService(client, index, count, zlib.crc32(f"{address} {count}".encode()))


def _state() -> Any:
    return getattr(sys.modules.get("jax._src.distributed"), "global_state", None)
