"""How a device of a trace is called. Pure."""

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
