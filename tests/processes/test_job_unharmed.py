"""Nothing that the agent meets is the job's affair: not its stderr, its limits, its signals, nor a
server that floods. Real processes, real limits, real servers.
"""

from __future__ import annotations

import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest
from support.commands import environment
from support.flooding_servers import KINDS, flooding
from support.users import ROOT

import tpusmi
from tpusmi.agent.utilization import Utilization
from tpusmi.model import Reading
from tpusmi.sources.libtpu.pool import Pool
from tpusmi.sources.libtpu.ports import Endpoint

IMPORTED = "import tpusmi; tpusmi.start, tpusmi.stop, tpusmi.step, tpusmi.track"
"""Before it becomes another user, who may not read our Python."""
NO_THREADS = """
import os, resource
os.setgroups([]); os.setgid(54321); os.setuid(54321)
resource.setrlimit(resource.RLIMIT_NPROC, (1, 1))
"""
USE = """
with tpusmi.start() as agent:
    for _ in range(3): tpusmi.step(); tpusmi.step(flops="?")
    with tpusmi.step(): pass
    assert tpusmi.track(print) is print or callable(tpusmi.track(print))
tpusmi.start(); tpusmi.stop(); tpusmi.stop()
print("went on", agent.running)
"""


def python(directory: Path, code: str, *before: str) -> subprocess.CompletedProcess[str]:
    """Run it as a job's program, with what is written before it."""
    whole = "\n".join(map(textwrap.dedent, (IMPORTED, *before, code)))
    return subprocess.run(
        [sys.executable, "-c", whole],
        capture_output=True,
        text=True,
        timeout=60,
        env=environment(directory),
    )


@pytest.mark.parametrize(
    "wrong", ["None", "'1'", "b'1'", "[]", "[1]", "{}", "object()", "1j", "(1, 2)", "Mean()"]
)
def test_what_is_no_number_of_seconds_is_a_type_error(wrong: str) -> None:
    class Mean:
        def __float__(self) -> float:
            raise RuntimeError

    with pytest.raises(TypeError, match="number of seconds"):
        tpusmi.start(eval(wrong, {"Mean": Mean}))


@pytest.mark.parametrize("wrong", [0, -1, 0.0, float("nan"), float("-inf")])
def test_what_is_not_positive_is_a_value_error(wrong: float) -> None:
    with pytest.raises(ValueError, match="must be positive"):
        tpusmi.start(wrong)


@ROOT
@pytest.mark.parametrize(
    "stderr",
    [
        "",
        "import sys; sys.stderr = None",
        "import sys; sys.stderr.close()",
        "import os; os.close(2)",
        "import sys; sys.stderr = open('/dev/full', 'w', buffering=1)",
        "import sys\nclass Odd:\n    def flush(self): pass\nsys.stderr = Odd()",
        "import os; os.dup2(os.open('/dev/full', os.O_WRONLY), 2)",
        "import os; r, w = os.pipe(); os.close(r); os.dup2(w, 2)",
        "import os, signal; signal.signal(signal.SIGPIPE, signal.SIG_DFL)\n"
        "r, w = os.pipe(); os.close(r); os.dup2(w, 2)",
        "import os; r, w = os.pipe(); os.set_blocking(w, False)\n"
        "try:\n    while True: os.write(w, bytes(4096))\n"
        "except BlockingIOError: os.set_blocking(w, True); os.dup2(w, 2)",
    ],
    ids=[
        *("usual", "none", "closed", "descriptor closed", "full", "an object", "on a full disk"),
        *("a pipe that nobody reads", "the same, and SIGPIPE ends", "a pipe that is full"),
    ],
)
def test_where_no_thread_can_be_started_the_job_goes_on_whatever_its_stderr_is(
    tmp_path: Path, stderr: str
) -> None:
    done = python(tmp_path, USE, stderr, NO_THREADS)
    assert (done.stdout, done.returncode) == ("went on False\n", 0)
    if not stderr:
        assert done.stderr.count("tpusmi: agent not started: can't start new thread\n") == 2
        assert done.stderr.count("\n") == 2


LIMITED = """
import resource, signal, time
signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
resource.setrlimit(resource.RLIMIT_FSIZE, ({limit}, {limit}))
"""
WAIT = """
agent = tpusmi.start(0.05)
def wait_for(condition):
    until_s = time.monotonic() + 30
    while not condition() and time.monotonic() < until_s: time.sleep(0.02)
wait_for(lambda: "publishing" in repr(agent) or not agent.running)
resource.setrlimit(resource.RLIMIT_FSIZE, ({then}, {limit}))
wait_for(lambda: not agent.running)
print(tpusmi.agent.Agent().running); tpusmi.stop(); print("went on")
"""


@pytest.mark.parametrize(
    ("limit", "then", "running"), [(100, 100, False), (102_400, 0, False), (1 << 30, 10, False)]
)
def test_a_limit_on_the_size_of_files_does_not_end_the_job(
    tmp_path: Path, limit: int, then: int, running: bool
) -> None:
    how = {"limit": limit, "then": then}
    done = python(tmp_path, WAIT.format(**how), LIMITED.format(**how))
    assert (done.stdout, done.returncode) == (f"{running}\nwent on\n", 0)
    assert done.stderr.count("\n") == 1
    assert "ulimit -f" in done.stderr


def test_the_limit_at_the_end_is_of_no_harm_either(tmp_path: Path) -> None:
    done = python(
        tmp_path,
        "tpusmi.start(60); time.sleep(0.5); resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))",
        LIMITED.format(limit=1 << 30),
    )
    assert (done.stdout, done.stderr, done.returncode) == ("", "", 0)


def test_a_job_that_waits_for_a_signal_in_a_thread_gets_it(tmp_path: Path) -> None:
    code = """
    import os, signal, time
    tpusmi.start(0.05)
    time.sleep(0.3)
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(0.2)
    print(signal.sigwait({signal.SIGTERM}).name)
    """
    done = python(tmp_path, code)
    assert (done.stdout, done.returncode) == ("SIGTERM\n", 0)


def test_a_server_that_hangs_up_ends_no_program_that_takes_sigpipe(tmp_path: Path) -> None:
    code = """
    import signal, socket, time
    from tpusmi.sources.libtpu.plain import PlainChannel
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    server = socket.create_server(("127.0.0.1", 0))
    channel = PlainChannel(f"ipv4:127.0.0.1:{server.getsockname()[1]}")
    client, _ = server.accept()
    class Request:
        def SerializeToString(self): return b""
    codes = [channel.call("/x", Request(), 0.5).code()]
    client.recv(65536)
    client.close()
    for _ in range(3):
        time.sleep(0.1)
        codes.append(channel.call("/x", Request(), 0.0).code())  # sent, and not waited for
    print(*(code.name for code in codes))
    """
    done = python(tmp_path, code)
    assert (done.stdout, done.returncode) == (" ".join(["DEADLINE_EXCEEDED"] * 4) + "\n", 0)


class FloodedServer:
    """The metrics server of a job, which floods."""

    loading_s = 0.0

    def __init__(self, port: int) -> None:
        self._pool = Pool(("duty_cycle_percent",))
        self._endpoint = Endpoint(port, None, 1, is_guess=False)

    def read(self, now_s: float) -> list[Reading]:
        (answer,) = self._pool.ask([self._endpoint], now_s)
        return list(answer.reply.readings)

    def close(self) -> None:
        self._pool.close()


def test_a_server_that_floods_costs_the_job_next_to_nothing() -> None:
    """In the long run it is under 0.1 %: each try is paid for by the pause after it."""
    import contextlib
    import gc

    from tpusmi.metricproto import messages

    messages()
    with contextlib.ExitStack() as stack:
        # The heap of all tests is looked through on whichever thread is running.
        stack.callback(gc.enable)
        gc.disable()
        ports = [stack.enter_context(flooding(kind)) for kind in KINDS]
        started_s = time.monotonic()
        threads = [
            Utilization([0], "TPU v5 lite", 1.0, lambda p=p: FloodedServer(p)) for p in ports
        ]
        for thread in threads:
            thread.start()
        time.sleep(8)
        for thread in threads:
            thread.stop()
        took_s = time.monotonic() - started_s
    shares = {k: 100 * t.cpu_s / took_s for k, t in zip(KINDS, threads, strict=True)}
    assert {thread.failure for thread in threads} == {None}
    assert max(shares.values()) < 2.0, shares  # 0.1 here, most of it by the first try
