"""A real training job on a simulated TPU host to look at, for people without a TPU."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable

from tpusmi.model import Host
from tpusmi.simulate import faults
from tpusmi.simulate.host import HostPlan, Keeper, PortBusyError, StartError

__all__ = ["run"]

FAILED = 1
START_S = 60.0
"""For JAX to be imported, from a cold disk."""
XLA_FLAGS = "--xla_force_host_platform_device_count=8 --xla_cpu_multi_thread_eigen=false"
"""As many devices as the simulated machine has."""
PLAN = HostPlan(
    machine="v5e-8",
    age_s=22.0,  # it has loaded and compiled, and its steps begin as those of JAX do here
    hold=False,
    program=("-m", "tpusmi.demo.training"),
    variables=(("JAX_PLATFORMS", "cpu"), ("XLA_FLAGS", XLA_FLAGS)),
)


def run(open_dashboard: Callable[[Host], int]) -> int:
    """What `open_dashboard` returns, given the host of a running job; 1 when there is no job.

    Host and job are gone when this returns or raises, and soon after this process is killed.
    """
    if importlib.util.find_spec("jax") is None:
        _say("The demo trains a model with JAX, which is not here: pip install 'tpusmi[demo]'")
        return FAILED
    _say("Starting a JAX training job on 8 CPU devices, on a simulated TPU host …")
    try:
        keeper = Keeper(PLAN)
    except (StartError, PortBusyError) as error:
        _say(f"There is no simulated host: {error}")
        return FAILED
    try:
        line = keeper.line(START_S)
        if line and line.startswith("training"):
            _say(f"Faults to try, in another shell: echo leak > {keeper.host.root}/{faults.FILE}")
            return open_dashboard(keeper.host)
        _say(line or f"The training job did not start within {START_S:.0f} s.")
        return FAILED
    finally:
        _say(keeper.end())  # how the job ended, if it has


def _say(text: str) -> None:
    if text:
        sys.stderr.write(f"{text}\n")
        sys.stderr.flush()
