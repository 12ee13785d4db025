"""Jobs whose threads are green: the agent's stay real, and neither is in the way of the other."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest
from support.jobs import collector, job, seen
from support.waits import until

PATCHES = {
    "gevent": "from gevent import monkey; monkey.patch_all()",
    "eventlet": "import warnings; warnings.simplefilter('ignore')\n"
    "import eventlet; eventlet.monkey_patch()",
    "a library that takes everything": """
import threading, time, _thread
def refuse(*_, **__): raise AssertionError("this thread is not for the agent")
for module, names in (
    (_thread, ("start_new_thread", "start_new")),
    (threading, ("Thread", "Event", "Condition", "current_thread", "_start_new_thread")),
    (time, ("sleep",)),
):
    for name in names: setattr(module, name, refuse)
""",
}
ORDERS = ("before the import", "after the import", "after the start")
JOB = """
import signal, time
blocked = lambda: signal.pthread_sigmask(signal.SIG_BLOCK, ())
def work(seconds):  # gives way to nobody
    end = time.monotonic() + seconds
    while time.monotonic() < end: tpusmi.step()
"""


def code(library: str, order: str) -> str:
    """A job that is patched at that moment, and starts the agent."""
    patch = {moment: "" for moment in ORDERS} | {order: PATCHES[library]}
    lines = (
        "import sys; names = [n for n in sys.modules if n.partition('.')[0] == 'tpusmi']",
        "kept = [sys.modules.pop(n) for n in names]",
        patch["before the import"],
        "import tpusmi",
        patch["after the import"],
        JOB,
        "tpusmi.start(interval_s=0.05)",
        patch["after the start"],
    )
    return "\n".join(lines)


def cases() -> list[object]:
    return [
        pytest.param(
            library,
            order,
            id=f"{library}, {order}",
            marks=pytest.mark.skipif(
                library in ("gevent", "eventlet") and not importlib.util.find_spec(library),
                reason=f"{library} is not installed",
            ),
        )
        for library in PATCHES
        for order in ORDERS
    ]


@pytest.mark.parametrize(("library", "order"), cases())
def test_samples_go_on_while_the_job_never_gives_way(
    tmp_path: Path, library: str, order: str
) -> None:
    """What the agent blocks for itself are not the job's signals, either."""
    directory = tmp_path / "segments"
    lines = code(library, order) + "\nwork(1e9)"
    with job(directory, lines) as busy:
        looking = collector(directory)
        s, p = seen(looking, busy.pid, lambda s, p: (s.value("steps", p.key) or 0) > 0)
        first = s.value("steps", p.key) or 0
        seen(looking, busy.pid, lambda s, p: (s.value("steps", p.key) or 0) > first + 1000)
        busy.process.terminate()
        assert busy.process.wait(60) == -15
        assert busy.stderr == ""


@pytest.mark.parametrize(("library", "order"), cases())
def test_the_job_is_unharmed_and_the_agent_ends_when_told_to(
    tmp_path: Path, library: str, order: str
) -> None:
    directory = tmp_path / "segments"
    lines = (
        code(library, order)
        + """
say(len(blocked()))
sampler = sys.modules["tpusmi.agent"]._sampler
tpusmi.stop()
began = time.monotonic()
while sampler.is_alive() and time.monotonic() - began < 30: pass
say(not sampler.is_alive(), tpusmi.start().running)
tpusmi.stop()
hear()
"""
    )
    with job(directory, lines) as calm:
        assert calm.hear() == "0"
        assert calm.hear() == "True True"
        until(lambda: not list(directory.glob("*")))
        assert calm.end() == 0
        assert calm.stderr == ""
