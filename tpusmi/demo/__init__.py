"""A real training job on a simulated TPU host to look at, for people without a TPU."""

from __future__ import annotations

import importlib.util
import select
import subprocess
import sys
from collections.abc import Callable

from tpusmi.model import Host
from tpusmi.simulate.attached import attach
from tpusmi.simulate.directory import sweep
from tpusmi.simulate.offspring import start_module

__all__ = ["run"]

FAILED = 1
START_S = 60.0
"""For JAX to be imported, from a cold disk."""
END_S = 10.0
"""More than the keeper gives the training job."""


def run(open_dashboard: Callable[[Host], int]) -> int:
    """What `open_dashboard` returns, given the host of a running job; 1 when there is no job.

    Host and job are gone when this returns or raises, and soon after this process is killed.
    """
    if importlib.util.find_spec("jax") is None:
        _say("The demo trains a model with JAX, which is not here: pip install 'tpusmi[demo]'")
        return FAILED
    _say("Starting a JAX training job on 8 CPU devices, on a simulated TPU host …")
    try:
        keeper = start_module("tpusmi.demo.keeper")
    except OSError as error:
        _say(f"The demo's Python cannot be run: {error.strerror}")
        return FAILED
    try:
        directory, words = _line(keeper), _line(keeper)
        if words.startswith("training"):
            return open_dashboard(attach(directory))
        _say(words or f"The training job did not start within {START_S:.0f} s.")
        return FAILED
    finally:
        _end(keeper)


def _line(keeper: subprocess.Popen[bytes]) -> str:
    """The next line the keeper says; empty when it ended or says nothing for too long."""
    assert keeper.stdout is not None
    if not select.select([keeper.stdout], [], [], START_S)[0]:
        return ""
    return keeper.stdout.readline().decode("utf-8", "replace").strip()


def _end(keeper: subprocess.Popen[bytes]) -> None:
    """Let the keeper clear up, and show what it still had to say: the end of a job that died."""
    try:
        words, _ = keeper.communicate(timeout=END_S)
    except subprocess.TimeoutExpired:
        keeper.kill()  # the job dies with it
        words, _ = keeper.communicate(timeout=END_S)
    sweep()  # in case it was killed
    _say(words.decode("utf-8", "replace").strip())


def _say(words: str) -> None:
    if words:
        sys.stderr.write(f"{words}\n")
        sys.stderr.flush()
