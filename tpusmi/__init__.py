"""nvidia-smi and nvitop for Google TPUs.

Importing it does nothing and loads nothing.
"""

from __future__ import annotations

__version__ = "0.1.0"

__all__ = ["free", "holders", "show", "snapshot", "start", "step", "stop", "track"]

TYPE_CHECKING = False  # typing's own takes longer to import than all of this
if TYPE_CHECKING:
    from tpusmi.agent import start, step, stop, track
    from tpusmi.collect import snapshot
    from tpusmi.freeing import free, holders
    from tpusmi.notebook import show

_HOME = {
    "start": "tpusmi.agent",
    "stop": "tpusmi.agent",
    "step": "tpusmi.agent",
    "track": "tpusmi.agent",
    "snapshot": "tpusmi.collect",
    "holders": "tpusmi.freeing",
    "free": "tpusmi.freeing",
    "show": "tpusmi.notebook",
}


def __getattr__(name: str) -> object:
    """Public names are resolved at first use, then kept here, so that `tpusmi.step` costs no
    look-up in a loop.
    """
    if name not in _HOME:
        raise AttributeError(f"module 'tpusmi' has no attribute {name!r}")
    import importlib

    value = globals()[name] = getattr(importlib.import_module(_HOME[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
