"""A simulated TPU host: sysfs, device nodes that processes hold, metrics servers, faults.

It makes the inputs of a machine, so no code of the product knows it, but the command line.
"""

from tpusmi.simulate.host import (
    Plan,
    PortBusyError,
    StartError,
    attach,
    is_running,
    set_faults,
    start,
)

__all__ = ["Plan", "PortBusyError", "StartError", "attach", "is_running", "set_faults", "start"]
