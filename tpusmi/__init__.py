"""nvidia-smi and nvitop for Google TPUs.

In training code, the agent shows this process to tpusmi:

    tpusmi.start()              once, before or after JAX starts
    tpusmi.step()               once per step; or `with tpusmi.step():` around it
    tpusmi.step(flops=F)        the same, for FLOP/s and MFU
    tpusmi.track(jax.jit(f))    or count the FLOPs of a jitted function
    tpusmi.stop()               at the end, if you do not wait for that of the process

In a script, a shell or a notebook, read this host or a simulated one:

    s = tpusmi.snapshot()       s.devices[0].hbm_used_bytes, s.processes[0].step_time_s.p95
    for s in tpusmi.watch(5):   one every five seconds
    tpusmi.show()               a live panel below a notebook cell
    tpusmi.holders()            the processes that hold the TPU, and whether they are stale
    tpusmi.free(stale=True)     end the stale ones, after proof, and wait for the TPU
    tpusmi.profile(pid)         capture a short trace of a job: MXU, idle time, steps, operations

Importing it does nothing and loads nothing. The classes of the objects, for annotations, are
tpusmi.Snapshot, tpusmi.Device, tpusmi.Process, tpusmi.Chip, tpusmi.Notice and so on: see
`dir(tpusmi)` and docs/python.md.
"""

from __future__ import annotations

__version__ = "0.1.0"

__all__ = [
    "free",
    "holders",
    "profile",
    "show",
    "snapshot",
    "start",
    "step",
    "stop",
    "track",
    "watch",
]

TYPE_CHECKING = False  # typing's own takes longer to import than all of this
if TYPE_CHECKING:
    from tpusmi.actions.outcome import Report as Report
    from tpusmi.actions.plan import Plan as Plan
    from tpusmi.agent import Agent as Agent
    from tpusmi.agent import start, step, stop, track
    from tpusmi.api.objects import Chip as Chip
    from tpusmi.api.objects import Core as Core
    from tpusmi.api.objects import Device as Device
    from tpusmi.api.objects import Distribution as Distribution
    from tpusmi.api.objects import HloExecutionTime as HloExecutionTime
    from tpusmi.api.objects import Holding as Holding
    from tpusmi.api.objects import Host as Host
    from tpusmi.api.objects import Link as Link
    from tpusmi.api.objects import LockFile as LockFile
    from tpusmi.api.objects import MemoryProfile as MemoryProfile
    from tpusmi.api.objects import Node as Node
    from tpusmi.api.objects import Notice as Notice
    from tpusmi.api.objects import Process as Process
    from tpusmi.api.objects import Provenance as Provenance
    from tpusmi.api.objects import Server as Server
    from tpusmi.api.objects import Sign as Sign
    from tpusmi.api.objects import Site as Site
    from tpusmi.api.objects import Snapshot as Snapshot
    from tpusmi.api.objects import Source as Source
    from tpusmi.api.objects import StepBody as StepBody
    from tpusmi.api.objects import StepTime as StepTime
    from tpusmi.api.profiling import profile
    from tpusmi.api.reading import Snapshots as Snapshots
    from tpusmi.api.reading import holders, snapshot, watch
    from tpusmi.freeing import free
    from tpusmi.notebook import Panel as Panel
    from tpusmi.notebook import show
    from tpusmi.trace.figures import TraceProfile as TraceProfile
    from tpusmi.trace.troubles import CaptureError as CaptureError

_HOME = {
    "tpusmi.agent": ("Agent", "start", "stop", "step", "track"),
    "tpusmi.api.objects": (
        "Chip",
        "Core",
        "Device",
        "Distribution",
        "HloExecutionTime",
        "Holding",
        "Host",
        "Link",
        "LockFile",
        "MemoryProfile",
        "Node",
        "Notice",
        "Process",
        "Provenance",
        "Server",
        "Sign",
        "Site",
        "Snapshot",
        "Source",
        "StepBody",
        "StepTime",
    ),
    "tpusmi.api.profiling": ("profile",),
    "tpusmi.api.reading": ("Snapshots", "holders", "snapshot", "watch"),
    "tpusmi.actions.outcome": ("Report",),
    "tpusmi.actions.plan": ("Plan",),
    "tpusmi.freeing": ("free",),
    "tpusmi.notebook": ("Panel", "show"),
    "tpusmi.trace.figures": ("TraceProfile",),
    "tpusmi.trace.troubles": ("CaptureError",),
}
_PUBLIC = {name: home for home, names in _HOME.items() for name in names}

if not TYPE_CHECKING:  # a type checker would believe that every name is there

    def __getattr__(name: str) -> object:
        """Public names are resolved at first use, then kept here, so that `tpusmi.step` costs no
        look-up in a loop.
        """
        import sys

        if name not in _PUBLIC:
            # With `name` and `obj`, a traceback of Python suggests the nearest name by itself.
            message, module = f"module 'tpusmi' has no attribute {name!r}", sys.modules[__name__]
            raise AttributeError(message, name=name, obj=module)
        import importlib

        value = globals()[name] = getattr(importlib.import_module(_PUBLIC[name]), name)
        return value


def __dir__() -> list[str]:
    """The public names only."""
    return sorted([*_PUBLIC, "__version__"])
