"""How a device of a trace is called, and how long it waits for the others. Pure."""

from tpusmi import text
from tpusmi.trace.figures import CoreFigures

PLANE_MOST = 24


def core_name(core: CoreFigures) -> str:
    """Its global id as JAX numbers devices, else its local index, else the name of its plane."""
    if core.id is not None:
        return str(core.id)
    if core.local_index is not None:
        return str(core.local_index)
    return text.clean(core.plane, PLANE_MOST) or "?"


def collectives_percent(core: CoreFigures) -> float | None:
    """Percent of its captured time in exchanges with other devices; None when it is unknown."""
    if core.collectives_s is None or core.captured_s <= 0:
        return None
    return 100 * core.collectives_s / core.captured_s
