"""What the cores run, from a GetTpuRuntimeStatusResponse. Pure; not a byte of it is trusted."""

from __future__ import annotations

from typing import Any

from tpusmi.metricproto import CORE_TYPES
from tpusmi.model import Core
from tpusmi.text import clean

CORES_MOST = 4096
LOCATION_MOST = 400
FINGERPRINT_MOST_BYTES = 64


def cores(response: Any, server: str) -> tuple[Core, ...]:
    """Every core that the server speaks of, by its global id."""
    states = response.core_states[:CORES_MOST]
    return tuple(sorted((_core(state, server) for state in states), key=lambda core: core.id))


def _core(state: Any, server: str) -> Core:
    summary = state.value
    identity = summary.core_id
    place = identity.core_on_chip
    locations = (s.hlo_location for s in summary.sequencer_info if s.hlo_location)
    error = clean(summary.error_message, 200) or None
    fingerprint = summary.program_fingerprint[:FINGERPRINT_MOST_BYTES].hex()
    return Core(
        server,
        state.key,
        identity.chip_id if identity.HasField("chip_id") else None,
        _core_type(place.type) if place.HasField("type") else None,
        place.index if place.HasField("index") else None,
        clean(next(locations, ""), LOCATION_MOST) or None,
        fingerprint or None,
        None if error else len(summary.queued_program_info),
        error,
    )


def _core_type(number: int) -> str:
    """Its name; libtpu knows more types than it tells, so an unknown one is its number."""
    return CORE_TYPES[number] if 0 <= number < len(CORE_TYPES) else str(number)
