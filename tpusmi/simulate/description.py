"""simulated.json: everything about a simulated host that its own processes and viewers need.

Standard library only, and little of it: see workload.py.
"""

from __future__ import annotations

import json
import os
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

FILE = "simulated.json"
VERSION = 1


def write(directory: str, description: dict[str, Any]) -> None:
    """Write it in one go: a viewer never sees half of it."""
    path = f"{directory}/{FILE}"
    with open(f"{path}.new", "w", encoding="utf-8") as file:
        json.dump(description, file, indent=1)
    os.replace(f"{path}.new", path)


def read(directory: str) -> dict[str, Any]:
    """The description of the host in that directory. Raises ValueError with a sentence."""
    try:
        with open(f"{directory}/{FILE}", encoding="utf-8") as file:
            found = json.load(file)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "not readable"
        raise ValueError(f"no simulated host in {directory}: {FILE}: {reason}") from error
    if not isinstance(found, dict) or found.get("version") != VERSION:
        raise ValueError(f"the host in {directory} was simulated by another version of tpusmi")
    return found


def job_time_s(description: dict[str, Any]) -> float:
    """Seconds since the simulated job's start; with `freeze_s` always the same."""
    frozen: float | None = description["freeze_s"]
    if frozen is not None:
        return frozen
    born_at_s: float = description["born_at_s"]
    return time.monotonic() - born_at_s
